#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# package.sh CMAKE SOURCE CC: builds the producer library alone, installs it below a scratch folder, checks what the
# shared library needs and exports, and builds and runs a small program against it by pkg-config and by CMake.
set -eu -o pipefail

cmake=$1
source=$2
compiler=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
prefix=$folder/prefix
export DRIVEREC_RUN_DIR=$folder/run
mkdir -p "$DRIVEREC_RUN_DIR"

die() {
	printf 'package.sh: %s\n' "$*" >&2
	exit 1
}

quietly() {
	"$@" >"$folder/log" 2>&1 || {
		cat "$folder/log" >&2
		die "failed: $*"
	}
}

quietly "$cmake" -S "$source" -B "$folder/build" -DCMAKE_C_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release \
	-DDRIVEREC_PRODUCER_ONLY=ON -DBUILD_TESTING=OFF -DCMAKE_INSTALL_PREFIX="$prefix" \
	-DCMAKE_INSTALL_LIBDIR="$prefix/lib"
quietly "$cmake" --build "$folder/build" --parallel 2 --target libdriverec libdriverec_static
quietly "$cmake" --install "$folder/build"

library=$prefix/lib/libdriverec.so
[ -e "$library" ] || die 'no shared library is installed'
[ -e "$prefix/lib/libdriverec.a" ] || die 'no static library is installed'

dynamic=$(readelf -dW "$library")
needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' <<<"$dynamic")
for name in $needed; do
	case $name in
	libc.so.6 | libpthread.so.0) ;;
	*) die "libdriverec.so needs $name: libc alone is promised" ;;
	esac
done
grep -q NODELETE <<<"$dynamic" || die 'libdriverec.so is not marked NODELETE'

exports=$(readelf --dyn-syms -W "$library" | awk '$7 != "UND" && $5 != "LOCAL" && NR > 3 {print $8}')
[ -n "$exports" ] || die 'libdriverec.so exports nothing'
foreign=$(grep -v '^drec_' <<<"$exports" || true)
[ -z "$foreign" ] || die "libdriverec.so exports $foreign"

cat >"$folder/consumer.c" <<'EOF'
#include <driverec/driverec.h>

int main(void)
{
	drec *rec = drec_open(NULL);
	drec_scope scope = drec_begin(rec, DREC_NAME(rec, "work"));
	drec_end(rec, scope);
	drec_close(rec);
	return rec == NULL;
}
EOF

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
read -r -a flags <<<"$(pkg-config --cflags --libs driverec)"
quietly "$compiler" -o "$folder/shared" "$folder/consumer.c" "${flags[@]}"
LD_LIBRARY_PATH=$prefix/lib "$folder/shared" || die 'the program that links the shared library fails'
read -r -a flags <<<"$(pkg-config --cflags driverec)"
quietly "$compiler" -o "$folder/static" "$folder/consumer.c" "${flags[@]}" "$prefix/lib/libdriverec.a" -pthread
"$folder/static" || die 'the program that links the static library fails'

mkdir "$folder/consumer"
mv "$folder/consumer.c" "$folder/consumer/"
cat >"$folder/consumer/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.16)
project(consumer LANGUAGES C)
find_package(driverec 0.1 REQUIRED)
add_executable(shared consumer.c)
target_link_libraries(shared PRIVATE driverec::driverec)
add_executable(static consumer.c)
target_link_libraries(static PRIVATE driverec::driverec_static)
EOF
quietly "$cmake" -S "$folder/consumer" -B "$folder/consumer/build" -DCMAKE_C_COMPILER="$compiler" \
	-DCMAKE_PREFIX_PATH="$prefix"
quietly "$cmake" --build "$folder/consumer/build"
"$folder/consumer/build/shared" || die 'the CMake program that links the shared library fails'
"$folder/consumer/build/static" || die 'the CMake program that links the static library fails'

# Every public header compiles by itself, as C and as C++.
for header in "$prefix"/include/driverec/*.h; do
	quietly "$compiler" -std=c11 -Wall -Wextra -Werror -I"$prefix/include" -fsyntax-only -x c "$header"
	if command -v c++ >/dev/null; then
		quietly c++ -std=c++17 -Wall -Wextra -Werror -I"$prefix/include" -fsyntax-only -x c++ "$header"
	fi
done
printf 'libdriverec: needs %s; %d exports\n' "$(tr '\n' ' ' <<<"$needed")" "$(wc -l <<<"$exports")"
