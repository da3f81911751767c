driverec recover
driverec recover none.ring
driverec recover -o out.drec
echo hello > no.ring; driverec recover no.ring
driverec recover no.ring -o out.drec
mkdir -p $DRIVEREC_RUN_DIR/rings; driverec recover
driverec recover --stroe here
driverec replay
driverec replay none.json
driverec replay no.ring
driverec replay no.ring --fail-on loud
driverec replay no.ring --set latency_spik.warn=2
driverec bench
driverec bench rnig
driverec demo --dri x
driverec demo extra
ls
