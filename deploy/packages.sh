#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The one list of what driverec needs from Debian 12 or 13, and how it is installed.
# Sourced by deploy/quickstart.sh and tests/run.sh; run by itself it installs everything.

DRIVEREC_BUILD_PACKAGES=(
	build-essential cmake ninja-build pkgconf
	zlib1g-dev libzstd-dev libcjson-dev libuv1-dev libmicrohttpd-dev libcurl4-openssl-dev libisal-dev
)
# python3: an independent reader of rings and a comparison with an independent reader of traces.
DRIVEREC_TEST_PACKAGES=(check python3)
# A reduced trace is drawn in a real browser; not for run.sh --quick.
DRIVEREC_BROWSER_PACKAGES=(chromium)

# Debian's cmake and ninja, whatever else is first on PATH.
if [ -x /usr/bin/cmake ] && [ -x /usr/bin/ninja ]; then
	export PATH="/usr/bin:$PATH"
fi

packages_missing() {
	local package
	for package in "$@"; do
		dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q ' ok installed$' ||
			printf '%s\n' "$package"
	done
}

# With `as_root` of the caller.
packages_apt() {
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >&2
}

# Installs what is missing of the packages given; says what to do where it may not.
packages_install() {
	local missing=() as_root=()
	if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
		printf 'driverec: this is no Debian: make sure that there are %s\n' "$*" >&2
		return 0
	fi
	mapfile -t missing < <(packages_missing "$@")
	[ "${#missing[@]}" -eq 0 ] && return 0
	if [ "$(id -u)" -ne 0 ]; then
		if ! command -v sudo >/dev/null; then
			printf 'driverec: packages are missing, and this is neither root nor is there sudo. As root, once:\n' >&2
			printf '  apt-get update && apt-get install -y --no-install-recommends %s\n' "${missing[*]}" >&2
			return 1
		fi
		as_root=(sudo)
	fi
	printf 'installing %s\n' "${missing[*]}" >&2
	if ! packages_apt "${missing[@]}" 2>/dev/null && ! { "${as_root[@]}" apt-get update -q >&2 &&
		packages_apt "${missing[@]}"; }; then
		printf 'driverec: apt-get could not install: %s\n' "${missing[*]}" >&2
		return 1
	fi
	export PATH="/usr/bin:$PATH"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	packages_install "${DRIVEREC_BUILD_PACKAGES[@]}" "${DRIVEREC_TEST_PACKAGES[@]}"
fi
