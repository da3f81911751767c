driverec cofnig
driverec zzzzzzzzzz
driverec --jsno
driverec config
driverec config chekc
driverec config check a b
driverec config show a
driverec config --orgin show
driverec config --json=1 show
driverec config --config
