driverec run -q --store store -- sh -c '[ -e /proc/$$/fd/0 ] && echo open; exit 5' <&-
driverec run -q --store store -- sh -c '[ -e /proc/$$/fd/1 ] && echo open >&2; exit 5' >&-
driverec run -q --store store -- sh -c '[ -e /proc/$$/fd/2 ] && echo open; exit 5' 2>&-
driverec run -q --store store -- sh -c 'ls /proc/$$/fd | grep -x [012]; exit 5' <&- >&- 2>&-
driverec run -q --store store -- sh -c '[ -e /proc/$$/fd/0 ] && [ -e /proc/$$/fd/1 ] && [ -e /proc/$$/fd/2 ]'
driverec run -q --store store/lock -- sh -c 'exit 6' <&- >&- 2>&-
driverec --version >&-
