# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Which Debian packages each task needs, and installing what is missing. Sourced, not run.

ca_packages() { # TASK...
	local task
	for task in "$@"; do
		case $task in
		build)
			echo autoconf automake libtool pkg-config gcc g++ libc6-dev make binutils
			echo libdw-dev libelf-dev libcapstone-dev libiberty-dev libjson-c-dev
			echo libunwind-dev libpapi-dev libexpat1-dev libprotobuf-c-dev protobuf-c-compiler
			;;
		plot)
			echo python3 python3-matplotlib
			;;
		test)
			echo libcmocka-dev python3 python3-matplotlib python3-jsonschema
			echo pigz gdb procps util-linux elfutils dwz clang llvm groff-base xz-utils
			echo systemtap-sdt-dev coz-profiler chromium graphviz
			echo openmpi-bin libopenmpi-dev
			echo strace valgrind libjemalloc2 libtcmalloc-minimal4 libfaketime musl-tools
			;;
		suites)
			echo libpython3.11-testsuite perl dpkg-dev sqlite3 redis-server redis-tools
			;;
		ci)
			echo libclang-rt-14-dev clang-format shellcheck xz-utils git
			;;
		esac
	done
}

# Install the packages of the tasks that are not there yet: silent and without the network when
# none is missing.
ca_install() { # TASK...
	local package missing=() as_root=()

	if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
		echo "This is not Debian: nothing is installed. The Debian names of what is needed:"
		ca_packages "$@"
		return 0
	fi
	for package in $(ca_packages "$@"); do
		dpkg-query -W -f '${db:Status-Status}\n' "$package" 2> /dev/null |
			grep -qx installed || missing+=("$package")
	done
	[ "${#missing[@]}" -gt 0 ] || return 0
	echo "== installing: ${missing[*]}"
	if [ "$(id -u)" -ne 0 ]; then
		if ! command -v sudo > /dev/null; then
			echo "Neither root nor sudo: as root, run  apt-get install ${missing[*]}" >&2
			return 1
		fi
		as_root=(sudo)
		[ -t 0 ] || as_root+=(-n)
	fi
	"${as_root[@]}" apt-get -q update &&
		"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y \
			--no-install-recommends "${missing[@]}"
}
