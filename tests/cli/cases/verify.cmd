driverec verify
driverec verify one.json
driverec verify none.json none.json
printf '{"schemaVersion":1,"traceEvents":[{"ph":"M","name":"thread_name","pid":1,"tid":3,"args":{"name":"main"}},\n{"ph":"X","name":"ProfilerStep#1","pid":1,"tid":3,"ts":0,"dur":90,"args":{}},\n{"ph":"X","name":"mm","pid":1,"tid":3,"ts":10,"dur":20,"args":{"k": 1}},\n{"ph":"X","name":"add","pid":1,"tid":3,"ts":40,"dur":5,"args":{}},\n{"ph":"X","name":"add","pid":1,"tid":3,"ts":50,"dur":5,"args":{}},\n{"ph":"C","name":"mem","pid":1,"ts":5,"args":{"used":9}},\n{"ph":"C","name":"mem","pid":1,"ts":6,"args":{"used":7}}]}\n' > raw.json
driverec verify raw.json raw.json
cp raw.json copy.json; driverec verify --json raw.json copy.json
sed 's/}]}$/},/' raw.json > unmarked.json; driverec verify raw.json unmarked.json; echo ' ' >> raw.json; driverec verify raw.json copy.json
mark='{"ph":"M","name":"driverec.reduced","args":{"version":1,"bin_ps":"100000000","origin_ps":"0"}}]}'
merged='{"ph":"X","cat":"driverec.merged","name":"add","pid":1,"tid":3,"ts":40,"dur":10,"args":{"driverec.events":2,"driverec.sum_ps":10000000,"driverec.longest_ps":5000000,"driverec.longest":"add"}},'
(grep -v -e '"add"' raw.json | sed 's/}]}$/},/'; echo "$merged$mark") > reduced.json; driverec verify raw.json reduced.json
driverec verify --json raw.json reduced.json
sed -e 's/"k": 1/"k":1/' -e 's/"dur":10,/"dur":12,/' -e 's/"used":9/"used":8/' -e 's/"schemaVersion":1,//' reduced.json > wrong.json; driverec verify raw.json wrong.json
driverec verify --json raw.json wrong.json | grep -c what
sed 's/"origin_ps":"0"/&,"window_from_ps":"30000000","window_to_ps":"80000000","tracks":"1*"/' reduced.json | grep -v '"mem"' > window.json; driverec verify raw.json window.json
gzip -c reduced.json | head -c 200 > cut.json.gz; driverec verify raw.json cut.json.gz; driverec verify cut.json.gz cut.json.gz 2>&1 | grep -o 'the gzip data is cut off\|the files are identical'
driverec verify --json raw.json reduced.json > /dev/full
mkfifo pipe; driverec verify raw.json pipe
