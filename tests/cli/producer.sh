#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# producer.sh SOURCE CC DRIVEREC: does what docs/producer.md says. Builds the library by its plain cc line, compiles
# and runs its examples, and looks for their events; compiles all public headers together, as C and as C++.
set -eu -o pipefail

source=$1
compiler=$2
driverec=$3
page=$source/docs/producer.md
folder=$(mktemp -d)
shm=$(mktemp -d /dev/shm/driverec-test-XXXXXX)
trap 'rm -rf "$folder" "$shm"' EXIT
export DRIVEREC_RUN_DIR=$shm OUT=$folder

die() {
	printf 'producer.sh: %s\n' "$*" >&2
	exit 1
}

# The page's only block in the language $1.
block() {
	awk -v begin="\`\`\`$1" '$0 == begin {on = 1; found++; next} /^```$/ {on = 0} on
		END {exit found != 1}' "$page" || die "docs/producer.md has not one block in $1"
}

# Runs the program $1; its ring must hold the spans named.
runs() {
	local ring name found
	rm -rf "$shm/rings"
	LD_LIBRARY_PATH=$folder "$folder/$1" || die "the example in $1 fails"
	ring=$(find "$shm/rings" -name '*.ring')
	[ -n "$ring" ] || die "the example in $1 left no ring"
	found=$("$driverec" export "$ring" -o "$folder/$1.json" && cat "$folder/$1.json")
	shift
	for name in "$@"; do
		grep -q "\"$name\"" <<<"$found" || die "no \"$name\" was recorded"
	done
}

block sh >"$folder/build.sh"
block c >"$folder/example.c"
block cpp >"$folder/example.cc"
sed -i "s|^cc |'$compiler' -Wall -Wextra -Werror |" "$folder/build.sh"
(cd "$source" && sh -eu "$folder/build.sh") || die 'the cc line does not build the library'

warnings=(-Wall -Wextra -Wpedantic -Werror)
use=("-I$source/ringbuf/include" "-L$folder" -ldriverec)
for standard in c11 c17; do
	"$compiler" "-std=$standard" "${warnings[@]}" -o "$folder/c" "$folder/example.c" "${use[@]}"
	runs c load compute loss train
done

(cd "$source/ringbuf/include" && printf '#include <%s>\n' driverec/*.h) >"$folder/all.c"
cp "$folder/all.c" "$folder/all.cc"
"$compiler" -std=c11 "${warnings[@]}" "${use[0]}" -fsyntax-only "$folder/all.c"

if ! command -v c++ >/dev/null; then
	printf 'skipped: no C++ compiler\n'
	exit 77
fi
for standard in c++11 c++17; do
	c++ "-std=$standard" "${warnings[@]}" "${use[0]}" -fsyntax-only "$folder/all.cc"
	c++ "-std=$standard" "${warnings[@]}" -o "$folder/cpp" "$folder/example.cc" "${use[@]}"
	runs cpp decode
done
