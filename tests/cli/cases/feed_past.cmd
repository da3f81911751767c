awk 'BEGIN { print "["; for (i = 0; i < 60; i++) printf "{\"ph\":\"X\",\"name\":\"ProfilerStep#%d\",\"pid\":1,\"tid\":1,\"ts\":170000000%06d0,\"dur\":%d},\n", i, i * 5000, i == 40 ? 400000 : 49000; print "]" }' > trace.json
driverec run -q --store store --feed trace.json 2> log
driverec show --store store store/incidents/* | grep -E '^  (marks|host spans) '
driverec show --store store store/incidents/* | sed -n '2s/.*  //p'
