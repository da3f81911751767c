driverec status
driverec trigger --last 2min --reason "nobody there"
driverec trigger --last soon
driverec run -q -- sh -c 'echo out; echo err >&2; exit 7'
driverec run -q -- ./no-such-program
driverec run --feed ./no-such-trace.json
driverec run --stroe here
