driverec incidents
driverec incidents --store ./none
driverec show abcd
driverec keep abcd
driverec delete abcd
driverec export abcd -o a.json
mkdir -p $DRIVEREC_RUN_DIR/rings; driverec recover --store store
driverec incidents --store store
driverec incidents --json --store store
driverec incidents --severity loud --store store
driverec incidents --since soon --store store
driverec show --store store
driverec show ab --store store
driverec show 20261130 --store store
driverec keep ../store --store store
driverec delete / --store store
mkdir store/incidents/mine; echo precious > store/incidents/mine/data; driverec delete mine --store store
driverec keep mine --store store
driverec show mine --store store
driverec incidents --store store
driverec incidents --all --store store | sed 's/ *[0-9]* KiB//'
mkdir victim; echo precious > victim/data; ln -s $PWD/victim store/incidents/20260101T000000Z-stall-abcdefab; driverec delete 20260101T000000Z-stall-abcdefab --store store
driverec delete abcdefab --store store
cat victim/data store/incidents/mine/data
echo x > file; driverec incidents --store file
driverec incidents --store file/deeper
driverec delete --even-kep abcd
driverec delete
