driverec config check
driverec config show | sed -n 1,8p
driverec config example > example.json && driverec config check example.json
driverec config check $CASES/bad.json
driverec config check $CASES/bad.json --json | sed -n 1,12p
driverec config check none.json
driverec config show --config $CASES/bad.json 2>&1 | tail -n 1
printf '{"args": "strip"}\n' > a.json; DRIVEREC_CONFIG=a.json driverec config show --origin | grep strip
mkdir -p ~/.config/driverec; printf '// mine\n{"host": {"every": "2 s"}}\n' > ~/.config/driverec/config.json; driverec config show --origin | grep -v default
driverec config check --config a.json
driverec config check > /dev/full
