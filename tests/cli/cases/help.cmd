driverec --version
driverec config --help
driverec --man nonsense
