driverec reduce
driverec reduce none.json
driverec reduce a.json b.json -o out.json.gz
driverec reduce . -o out.json.gz
driverec reduce a.json -o out.txt
driverec reduce a.json -o out.drec
driverec reduce a.json --format drec
driverec reduce -
driverec reduce - a.json -o out/
driverec reduce a.json --in-place -o out.json.gz
driverec reduce a.json --bins 10 --target-events 10%
driverec reduce a.json --bins 0
driverec reduce a.json --target-events 0%
driverec reduce a.json --target-events lots
driverec reduce a.json --target-bytes 20
driverec reduce a.json --window 10
driverec reduce a.json --window 10s:20
driverec reduce a.json --jobs 65
driverec reduce a.json --compress 0
driverec reduce a.json --verify --no-verify
mkdir empty; driverec reduce empty
: > empty.json; driverec reduce empty.json
echo hello > text.json; driverec reduce text.json
echo '{"version":1}' > object.json; driverec reduce object.json
mkfifo pipe; driverec reduce --in-place pipe
seq 400 | awk 'BEGIN { print "{\"traceEvents\":[" } { printf "%s{\"ph\":\"X\",\"name\":\"%s\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":%d,\"args\":{\"n\":%d}}\n", (NR > 1 ? "," : ""), (NR % 100 ? "op" : "step"), $1 * 10, (NR % 100 ? 4 : 900), $1 } END { print "],\"who\":\"me\"}" }' > x.json; driverec inspect x.json
driverec reduce --bins 10 x.json -o y.json -v | sed 's/comparisons: .*/comparisons: .../'
driverec inspect y.json
driverec verify x.json y.json | head -3
driverec reduce --bins 10 x.json --dry-run
driverec reduce --bins 10 x.json --json -o z.json | sed 's/,"verify":.*//'
driverec reduce --bins 10 x.json --json -o z.json --force --verify | grep -o '"verified[a-z_]*":[a-z]*'
driverec reduce --bins 10 x.json --json -o z.json --force --no-verify | grep -o '"verified[a-z_]*":[a-z]*'
driverec reduce --bins 10 x.json -o z9.json.gz --compress 9 --verify | grep -o verified; driverec reduce --bins 10 x.json -o z1.json.gz --compress 1 | grep -o verified; [ $(stat -c %s z9.json.gz) -lt $(stat -c %s z1.json.gz) ]
driverec reduce --bins 10 x.json -o z.json.gz | grep -o verified; driverec reduce --bins 10 x.json -o z6.json.gz --compress 6 | grep -o verified; cmp z.json.gz z6.json.gz
driverec reduce y.json
driverec reduce --again y.json -o yy.json --bins 10
driverec reduce --bins 10 x.json -o y.json
driverec reduce --bins 10 x.json -o y.json --force; driverec reduce --bins 10 x.json -o - > s.json; cmp s.json y.json
driverec reduce --target-events 20 x.json --dry-run -v
driverec reduce --target-bytes 8kB x.json -o b.json.gz | grep -o verified
driverec reduce --target-bytes 10B x.json -o c.json.gz | grep -o "even the coarsest.*"
driverec reduce --window 1ms:2ms --bins 10 x.json -o w.json
driverec reduce --window -1ms: --bins 10 x.json -o v.json
driverec reduce --window 2ms:1ms x.json
driverec reduce --window 2026-11-30T03:12:44Z: x.json
driverec reduce --window 5s:6s x.json -o none.json
driverec reduce --track 2/1 x.json -o none2.json
driverec reduce --bins 10 x.json -o x.pftrace
head -c 9000 x.json > cut.json; driverec reduce --bins 10 cut.json -o d.json
driverec reduce --in-place --settle 0 --bins 10 cut.json
cp x.json p.json; driverec reduce --in-place --settle 0 --bins 10 p.json --json | grep -o '"verified[a-z_]*":[a-z]*'
driverec reduce --in-place --settle 0 --bins 10 x.json; driverec reduce --in-place --settle 0 x.json
ls -A
