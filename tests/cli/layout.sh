#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# layout.sh SOURCE: what include folders cannot enforce. No "../" includes, no includes of a higher floor, an SPDX line
# in every file of ours, scripts that can be run.
set -u
cd "$1" || exit 1
bad=0

# Tells of each file named on stdin.
refuse() {
	local file
	while IFS= read -r file; do
		printf '%s: %s\n' "$file" "$1" >&2
		bad=1
	done
}

mapfile -t sources < <(find ringbuf reducer triggers recorder tests -name '*.[ch]' | sort)
mapfile -t scripts < <(find deploy tests -name '*.sh' | sort; printf '.ci/run\n')
[ "${#sources[@]}" -gt 0 ] || refuse 'no source file was found' <<<"$1"

# Tests may reach into the module that they test.
refuse 'includes by ../' < <(grep -l '#include "\.\./' -r ringbuf reducer triggers recorder)
refuse 'has no SPDX line' < <(grep -L 'SPDX-License-Identifier: Apache-2.0' "${sources[@]}" "${scripts[@]}")
refuse 'includes a higher floor' < <(grep -lE '#include ["<](reducer|triggers|recorder)/' -r ringbuf)
refuse 'includes the triggers or the recorder' < <(grep -lE '#include ["<](triggers|recorder)/' -r reducer)
refuse 'includes the reducer or the recorder' < <(grep -lE '#include ["<](reducer|recorder)/' -r triggers)
for script in "${scripts[@]}"; do
	[ -x "$script" ] || refuse 'cannot be run' <<<"$script"
done
exit "$bad"
