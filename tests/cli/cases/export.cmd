driverec export
driverec export a.json
driverec export a.json -o out
driverec export a.json -o out.txt
driverec export a.json -o out.drec.json
echo '[{"ph":"X","name":"a","pid":1,"tid":2,"ts":1.5,"dur":2,"args":{"x": 1}},{"ph":"i","name":"b","ts":0.001}]' > a.json; driverec export a.json -o b.json; cat b.json
driverec export a.json -o c.json.gz; gzip -dc c.json.gz | cmp - b.json
driverec export --strip-args a.json -o d.json; grep -c args d.json
driverec export b.json -o b.json; cat b.json
echo old > kept.json; echo nothing > bad.json; driverec export bad.json -o kept.json; cat kept.json
driverec export a.json -o no/such/folder/out.json
mkdir folder.json; driverec export a.json -o folder.json
ln -s kept.json link.json; driverec export a.json -o link.json; readlink link.json; rm link.json
driverec export a.json -o out.drec > said; sed 's/, .*//' said; driverec export out.drec -o r.json; cat r.json
driverec export out.drec --strip-args -o stripped.drec | sed 's/, [0-9].*iB//'; driverec export stripped.drec -o s.json; cat s.json
driverec export --json a.json -o out.pftrace
driverec export out.pftrace -o never.json
driverec export out.drec -o from_drec.pftrace | sed 's/, .*//'
echo '{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":2,"ts":1.5004,"dur":2},{"ph":"E","pid":1,"tid":2,"ts":9},{"ph":"P","name":"sample","ts":3}]}' > odd.json; driverec export odd.json -o odd.pftrace
(printf 'DRVREC\r\n'; head -c 8184 /dev/zero) > zero.ring; driverec export zero.ring -o out.json
mkfifo pipe; cat a.json > pipe & driverec export pipe -o f.json; cmp f.json b.json
seq 9000 | sed 's/.*/{"ph":"i","name":"event &","ts":&}/' > many.json
(ulimit -f 1; trap '' XFSZ; driverec export many.json -o g.json 2>&1) | sed 's/, [^,]* free$//'
driverec export none.json -o out.json
printf '[{"ph":"i","name":"whole","ts":1},{"ph":"i","na' > cut.json; driverec export cut.json -o e.json; cat e.json
ls
