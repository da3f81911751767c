driverec --version
driverec --help
driverec
driverec run --help
driverec status --help
driverec demo --help
driverec trigger --help
driverec config --help
driverec inspect --help
driverec replay --help
driverec incidents --help
driverec show --help
driverec keep --help
driverec delete --help
driverec bench --help
driverec recover --help
driverec export --help
driverec --man nonsense
