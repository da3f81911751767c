#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The cost of a span here and of a tracepoint of LTTng-UST in overwrite mode, in one run on this machine.
# usage: compare_lttng.sh DRIVEREC PEER_SCRIPT     PEER_SCRIPT prints {"peer":…,"ns_per_event":N,…}
# Exit 0 where the span is at least five times as fast, 1 where not, 77 where LTTng is not installed.
set -euo pipefail
driverec=${1:?usage: compare_lttng.sh DRIVEREC PEER_SCRIPT}
peer_script=${2:?usage: compare_lttng.sh DRIVEREC PEER_SCRIPT}
if ! command -v lttng >/dev/null || ! command -v lttng-sessiond >/dev/null; then
	echo "skipped: lttng-tools is not installed"
	exit 77
fi
number() { sed -n "s/.*\"$1\":\([0-9.]*\).*/\1/p"; }
span=$("$driverec" bench ring | grep '"bench":"span"' | number value)
peer=$("$peer_script" | number ns_per_event)
awk -v span="$span" -v peer="$peer" 'BEGIN {
	printf "{\"bench\":\"span_beside_lttng_ust\",\"value\":%.2f,\"unit\":\"ns\",\"limit\":%.2f,\"ratio\":%.3f,\"goal\":0.2}\n",
		span, peer, span / peer
	exit !(span * 5 <= peer)
}'
