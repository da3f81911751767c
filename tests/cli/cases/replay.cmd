made() { awk -v n="$1" -v slow="$2" -v by="$3" 'BEGIN { print "run,time_ms,kind,value_s,data_s,step"; for (i = 0; i < n; i++) { s = i == slow ? by : 1 + i % 3 / 1000; t += s; printf "a,%.0f,step,%.3f,,%d\n", 1700000000000 + t * 1000, s, 100 + i } }'; }
made 60 40 2 > spike.csv; driverec replay --steps spike.csv --trigger latency_spike
driverec replay --steps spike.csv --trigger latency_spike --json
made 60 40 30 > stall.csv; driverec replay --steps stall.csv --trigger stall
driverec replay --steps stall.csv --trigger stall --set triggers.stall.factor=2
driverec replay --steps stall.csv --trigger stall --set stall.factor=2 --set stall.min=500ms --json
driverec replay --steps stall.csv --trigger stall --fail-on critical > /dev/null
driverec replay --steps stall.csv --trigger crash --fail-on note
gzip -c stall.csv > stall.csv.gz; driverec replay --steps stall.csv.gz --trigger stall
driverec replay --steps - --trigger stall < stall.csv.gz
cat stall.csv | driverec replay --steps - --trigger stall --set stall.factor=2
driverec replay --steps spike.csv stall.csv --trigger stall --trigger latency_spike
driverec replay --steps spike.csv stall.csv --trigger stall --set stall.factor=2
(head -31 spike.csv; sed 's/^a,/"b, the ""second""",/' stall.csv | tail -n +2) | sed 's/$/\r/' > two.csv; driverec replay --steps two.csv --trigger stall
(printf '\357\273\277'; sed 's/,/ , /g; s/ *$/  /' spike.csv) > blanks.csv; driverec replay --steps blanks.csv --trigger latency_spike
cut -d, -f4 spike.csv > values.csv; driverec replay --steps values.csv --trigger latency_spike
awk -F, -v OFS=, 'NR > 30 { $2 = "" } 1' spike.csv > no-times.csv; driverec replay --steps no-times.csv --trigger latency_spike --json | grep sample
awk -F, -v OFS=, 'NR > 30 { $2 = sprintf("%.0f", $2 - 3600000) } 1' stall.csv > set-back.csv; driverec replay --steps set-back.csv --trigger stall
(cat spike.csv; echo 'b,1,step,1,,1'; tail -1 spike.csv) > apart.csv; driverec replay --steps apart.csv
driverec replay --steps spike.csv --explain --trigger stall | awk 'NR < 4 { print $1, $3, $4 }'
driverec replay --steps spike.csv --explain --trigger stall --json | grep -c '{"belief":{"run":"a","series":"step","role":"step"'
awk 'BEGIN { print "run,value_s"; for (r = 0; r < 12; r++) for (i = 0; i < 30 + r; i++) print "r" r "," (i == 25 && r % 4 == 0 ? 1.6 + r / 10 : 1) }' > many.csv; driverec replay --steps many.csv --trigger latency_spike
driverec replay --steps many.csv --trigger latency_spike --all | tail -18
(head -5 spike.csv; echo 'a,1700000005000,step,nan,,5') > bad.csv; driverec replay --steps bad.csv
(head -5 spike.csv; echo 'a,17000000x,step,1,,5') > bad.csv; driverec replay --steps bad.csv
(head -5 spike.csv; echo 'a,1700000005000,step,-1,,5') > bad.csv; driverec replay --steps bad.csv
(head -5 spike.csv; echo '"a,1700000005000,step,1,,5') > bad.csv; driverec replay --steps bad.csv
(head -5 spike.csv; printf 'a,17000\0005000,step,1,,5\n') > bad.csv; driverec replay --steps bad.csv
(head -5 spike.csv; head -c 5000 /dev/zero | tr '\0' x) > bad.csv; driverec replay --steps bad.csv
(head -5 spike.csv; yes , | head -70 | tr -d '\n') > bad.csv; driverec replay --steps bad.csv
head -c 300 stall.csv.gz > cut.csv.gz; driverec replay --steps cut.csv.gz 2>&1 >/dev/null
echo 'time_ms,step' > bad.csv; driverec replay --steps bad.csv
echo 'run,value_s,run' > bad.csv; driverec replay --steps bad.csv
: > empty.csv; driverec replay --steps empty.csv
driverec replay --steps none.csv spike.csv --trigger stall
driverec replay -
driverec replay --steps spike.csv --trigger stal
driverec replay --steps spike.csv --trigger nothing-like-it
driverec replay --steps spike.csv --set stall.fctor=2
driverec replay --steps spike.csv --set triggers.gates.cooldwn=2
driverec replay --steps spike.csv --set stall.factor
driverec replay --steps spike.csv --set stall.factor=many
driverec replay --steps spike.csv --set series=load
awk 'BEGIN { print "["; for (i = 0; i < 60; i++) { d = i == 40 ? 2500 : 1000 + i % 3; printf "{\"ph\":\"X\",\"name\":\"ProfilerStep#%d\",\"pid\":7,\"tid\":\"main\",\"ts\":%d,\"dur\":%d},\n", i, t, d; t += d } print "{}]" }' > trace.json; driverec replay trace.json --trigger latency_spike
driverec replay trace.json --trigger latency_spike --set latency_spike.warn=3 --json | tail -1
driverec replay trace.json --explain --trigger stall | head -3 | cut -c1-34
driverec replay trace.json --step 'Other*' --trigger latency_spike
driverec replay trace.json none.json spike.csv
mkdir none; driverec replay none
