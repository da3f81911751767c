#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# layout.sh SOURCE: what include folders cannot enforce. No "../" includes, an SPDX line in every file of ours.
set -u
cd "$1" || exit 1
bad=0

say() {
	printf '%s\n' "$1" >&2
	bad=1
}

files=$(find ringbuf reducer triggers recorder tests -name '*.[ch]' | sort)
[ -n "$files" ] || say 'no source file was found'
for file in $files; do
	grep -q '#include "\.\./' "$file" && say "$file: includes by ../"
	head -n 1 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || say "$file: has no SPDX line"
done
for file in $(find deploy tests .ci -name '*.sh' -o -path .ci/run | sort); do
	head -n 2 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || say "$file: has no SPDX line"
	[ -x "$file" ] || say "$file: is not executable"
done
for file in ringbuf/include/driverec/*.h ringbuf/src/*.[ch]; do
	grep -Eq '#include ["<](reducer|triggers|recorder)/' "$file" && say "$file: includes a higher floor"
done
for file in triggers/include/triggers/*.h triggers/src/*.[ch]; do
	grep -Eq '#include ["<](reducer|recorder)/' "$file" && say "$file: includes the reducer or the recorder"
done
exit "$bad"
