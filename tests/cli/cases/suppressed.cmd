driverec incidents --suppressed
driverec run -q --store store -- true
driverec incidents --suppressed --store store
driverec incidents --suppressed --json --store store
awk 'BEGIN { d[10] = 900; d[40] = 1600; d[60] = 620; d[115] = 1500; d[129] = 1550; d[150] = 1510; print "["; t = 0; for (i = 0; i < 180; i++) { l = i in d ? d[i] : 500; printf "{\"ph\":\"X\",\"name\":\"ProfilerStep#%d\",\"pid\":1,\"tid\":1,\"ts\":1700000%06d000,\"dur\":%d000},\n", i, t, l; t += l + 1 } print "]" }' > trace.json
echo '{"triggers":{"difference":{"floor":"900 %"}}}' > config.json; driverec run -q --config config.json --store store --feed trace.json 2> log
driverec incidents --json --store store | grep -E '"(trigger|severity|step)"'
driverec incidents --suppressed --store store
driverec incidents --suppressed --all --store store
driverec incidents --suppressed --json --store store
driverec incidents --suppressed --severity critical --store store
driverec incidents --suppressed --trigger stall --store store
driverec incidents --suppressed --last 1h --store store
driverec incidents --suppressed --last soon --store store
driverec run -q --store store -- true 2> log; driverec incidents --suppressed --store store
cp -r store half; head -c 100 store/suppressed.state > half/suppressed.state; driverec incidents --suppressed --store half
cp -r store other; echo '{"suppressed":[]}' > other/suppressed.state; driverec incidents --suppressed --json --store other
driverec run -q --store other -- true 2>&1 | grep -o "what was held .*"; driverec incidents --suppressed --store other
rm other/suppressed.state; mkdir other/suppressed.state; driverec incidents --suppressed --store other
