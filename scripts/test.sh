#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Install what is missing, build in build/ and run all the tests.
# Up to four tests that fail are run a second time. The last line is "N passed, N failed, N skipped" (see
# scripts/summary.sh); the exit status is 0 when none failed.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/deps.sh
. scripts/deps.sh

build=${BUILD:-build}
jobs=$(nproc)

stop() {
	echo "== $1"
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
}

ca_install build test || stop "packages could not be installed"
echo "== building in $build/"
[ ! -e config.status ] || stop "configured in the source tree: run 'make distclean' there first"
autoreconf -fi > autoreconf.log 2>&1 || { cat autoreconf.log; stop "autoreconf failed"; }
rm -f autoreconf.log
mkdir -p "$build"
top=$PWD
(cd "$build" && CONFIG_SHELL=/bin/sh "$top/configure" -q "$@") || stop "configure failed"
make -C "$build" -s -j "$jobs" || stop "the build failed"
make -C "$build" -s -j "$jobs" check-build || stop "the tests do not build"

echo "== testing"
find "$build" -name '*.trs' -delete
status=0
make -C "$build" -s -j "$jobs" check-beside < /dev/null || status=$?
make -C "$build" -s check-alone < /dev/null || status=$?

# Tests of what a profiler does are tests of time, and other programs may have had the CPUs: what failed,
# if it is little, is run once more, and is told of whatever becomes of it.
mapfile -t again < <(scripts/summary.sh "$build" --failed)
if [ ${#again[@]} -gt 0 ] && [ ${#again[@]} -le 4 ]; then
	scripts/summary.sh "$build" "$status" | grep -A 60 '^-- FAILED' || true
	echo "== once more: ${again[*]}"
	status=0
	make -C "$build" -s recheck < /dev/null || status=$?
	for test in "${again[@]}"; do
		grep -qx -- "$test" <(scripts/summary.sh "$build" --failed) ||
			echo "-- only at the second try: $test (what it said at first stands above)"
	done
fi

exec scripts/summary.sh "$build" "$status"
