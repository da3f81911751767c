#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# install.sh CMAKE BUILD SOURCE DRIVEREC: installs below a scratch folder and checks that the program, the library,
# every public header, a man page a command and the package files are there, and that the pages render.
set -eu -o pipefail

cmake=$1
build=$2
source=$3
driverec=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

die() {
	printf 'install.sh: %s\n' "$*" >&2
	exit 1
}

DESTDIR=$folder "$cmake" --install "$build" >"$folder/log" 2>&1 || {
	cat "$folder/log" >&2
	die 'cmake --install fails'
}

# The one installed file of this name below $folder.
installed() {
	local found
	found=$(find "$folder" -path "*/$1" \( -type f -o -type l \))
	[ "$(grep -c . <<<"$found")" = 1 ] || die "$1 is not installed, or twice"
	printf '%s\n' "$found"
}

"$(installed bin/driverec)" --version >/dev/null || die 'the installed program does not run'
for name in libdriverec.so libdriverec.a pkgconfig/driverec.pc cmake/driverec/driverecConfig.cmake; do
	installed "$name" >/dev/null
done
for header in "$source"/ringbuf/include/driverec/*.h; do
	cmp -s "$header" "$(installed "include/driverec/$(basename "$header")")" || die "$header is not the one installed"
done

mapfile -t commands < <(sed -n 's/^\t&command_\([a-z_]*\),.*/\1/p' "$source/recorder/commands.c" | tr _ -)
[ "${#commands[@]}" -gt 0 ] || die 'no command was found'
for name in '' "${commands[@]}"; do
	page=$(installed "man1/driverec${name:+-$name}.1")
	"$driverec" --man ${name:+"$name"} >/dev/null || die "driverec --man $name fails"
	grep -q "^\.TH driverec${name:+-$name} " "$page" || die "$page is another's page"
	if command -v man >/dev/null; then
		complaints=$(MANWIDTH=80 man --warnings -l "$page" 2>&1 >/dev/null) || die "$page does not render"
		[ -z "$complaints" ] || die "$page: $complaints"
	fi
done
command -v man >/dev/null || printf 'there is no man here: pages were not rendered\n'
