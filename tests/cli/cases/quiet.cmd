awk 'BEGIN { print "["; t = 0; for (i = 0; i < 240; i++) { l = i < 120 ? 500 : 550; printf "{\"ph\":\"X\",\"name\":\"ProfilerStep#%d\",\"pid\":1,\"tid\":1,\"ts\":1700000%06d000,\"dur\":%d000},\n", i, t, l; t += l + 1 } print "]" }' > trace.json
echo '{"triggers":{"shift":{"alert":false}},"alerts":{"min_severity":"note","hooks":[{"name":"tell","exec":["sh","-c","echo $DRIVEREC_EVENT $DRIVEREC_SEVERITY $DRIVEREC_TRIGGER >> '$PWD/told'"]}]}}' > config.json; driverec config check --config config.json
driverec run -q --config config.json --store store --feed trace.json 2> log
driverec incidents --json --store store | grep -E '"(trigger|severity|step)"'
cat told
driverec show --store store store/incidents/* | sed -n '1p;3p' | sed 's/Process [0-9]*/Process <pid>/'
sed -i s/false/true/ config.json; driverec run -q --config config.json --store loud --feed trace.json 2> log
driverec incidents --json --store loud | grep -E '"(trigger|severity|step)"'
cat told
driverec replay "$DRIVEREC_RUN_DIR/rings" | tail -1
