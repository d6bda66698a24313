#!/usr/bin/env bash
# Install what is missing, build in build/ and run all the tests.
# The last line is "N passed, N failed, N skipped"; the exit status is 0 when none failed.
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

# The results of one kind, by automake's .trs files.
results() { # REGEX
	find "$build" -name '*.trs' -exec grep -lE "^:global-test-result: ($1)\$" {} + | sort
}

show() { # HEADING LINES RESULT-FILES...
	local heading=$1 lines=$2 file
	shift 2
	[ $# -gt 0 ] || return 0
	for file in "$@"; do
		file=${file#"$build"/}
		echo "-- $heading: ${file%.trs}"
		# the last line of a log is the verdict again
		sed '$d' "$build/${file%.trs}.log" | tail -n "$lines"
	done
}

ca_install build test || stop "packages could not be installed"
echo "== building in $build/"
[ ! -e config.status ] || stop "configured in the source tree: run 'make distclean' there first"
autoreconf -fi > autoreconf.log 2>&1 || { cat autoreconf.log; stop "autoreconf failed"; }
rm -f autoreconf.log
mkdir -p "$build"
top=$PWD
(cd "$build" && "$top/configure" -q "$@") || stop "configure failed"
make -C "$build" -s -j "$jobs" || stop "the build failed"
make -C "$build" -s -j "$jobs" check-build || stop "the tests do not build"

echo "== testing"
find "$build" -name '*.trs' -delete
status=0
make -C "$build" -s check < /dev/null || status=$?

mapfile -t passed < <(results 'PASS|XFAIL')
mapfile -t failed < <(results 'FAIL|XPASS|ERROR')
mapfile -t skipped < <(results 'SKIP')
show skipped 1 ${skipped[@]+"${skipped[@]}"}
show FAILED 60 ${failed[@]+"${failed[@]}"}
[ $((${#passed[@]} + ${#failed[@]})) -gt 0 ] || stop "no test ran"
[ "$status" -eq 0 ] || [ ${#failed[@]} -gt 0 ] || stop "make check failed, and no test did"
echo "${#passed[@]} passed, ${#failed[@]} failed, ${#skipped[@]} skipped"
[ ${#failed[@]} -eq 0 ]
