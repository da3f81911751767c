awk 'BEGIN { d[60] = 800; d[62] = 2500; d[64] = 2000; print "["; t = 0; for (i = 0; i < 70; i++) { l = i in d ? d[i] : 500; printf "{\"ph\":\"X\",\"name\":\"ProfilerStep#%d\",\"pid\":1,\"tid\":1,\"ts\":1700000%06d000,\"dur\":%d000},\n", i, t, l; t += l + 1 } print "]" }' > trace.json
for hook in note critical; do echo '{"name":"'$hook'","min_severity":"'$hook'","exec":["sh","-c","echo '$hook' hears $DRIVEREC_EVENT $DRIVEREC_SEVERITY >> '$PWD/told.$hook'"]}'; done | paste -sd, > hooks; echo '{"triggers":{"difference":{"floor":"900 %"}},"window":{"post":"5 s"},"alerts":{"hooks":['$(cat hooks)']}}' > config.json; driverec config check --config config.json
(head -n 62 trace.json; until [ -e told.note ]; do sleep 0.1; done; tail -n +63 trace.json) | driverec run -q --config config.json --store store --feed - 2> log
driverec incidents --json --store store | grep -E '"(trigger|severity|step|sentence)"' | sed 's/Process [0-9]*/Process <pid>/'
driverec show --store store store/incidents/* | grep '^  latency_spike'
cat told.note
cat told.critical
