driverec inspect
driverec inspect a b
driverec inspect none.json
driverec inspect .
: > empty.json; driverec inspect empty.json
echo hello > text.json; driverec inspect text.json
echo '{"a":1}' > object.json; driverec inspect object.json
echo '[{"ph":"X","name":"a \"b\"","pid":1,"tid":"t","ts":1.5,"dur":2},{"ph":"i","ts":0.001}]' > small.json; driverec inspect small.json
driverec inspect --json small.json
gzip -c small.json > named.json; driverec inspect --json named.json
mkfifo pipe; cat small.json > pipe & driverec inspect --json pipe
printf '[{"ph":"i","ts":1},{"ph":"X","ts":' > cut.json; driverec inspect cut.json
seq 9000 | sed 's/.*/{"ph":"i","name":"event &","ts":&}/' | gzip -c | head -c 9000 > cut.json.gz; driverec inspect cut.json.gz 2>&1 | grep -o 'the gzip data is cut off'
printf 'DRVREC\r\n' > short.ring; driverec inspect short.ring
(printf 'DRVREC\r\n'; head -c 8184 /dev/zero) > zero.ring; driverec inspect zero.ring
driverec inspect --json small.json > /dev/full
echo '{"traceEvents": null}' > null.json; driverec inspect null.json
