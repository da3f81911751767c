driverec recover
driverec recover none.ring
driverec recover -o out.drec
echo hello > no.ring; driverec recover no.ring
driverec recover no.ring -o out.drec
mkdir -p $DRIVEREC_RUN_DIR/rings; driverec recover
echo hello > no2.ring; driverec recover no.ring no2.ring; rm no2.ring
(cd $DRIVEREC_RUN_DIR/rings; echo hello > a.ring; echo 2 > b.ring; driverec recover 2>&1 | sort; rm a.ring b.ring)
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
driverec recover "$(printf 'a\033[2J\nb.ring')"
