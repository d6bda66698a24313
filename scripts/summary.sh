#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What became of the tests that "make check" ran in a build directory: why some were skipped, what
# those that failed said, and a last line "N passed, N failed, N skipped". Passed and failed are
# tests (programs and scripts). Skipped are tests that were skipped as a whole, and single checks
# that were skipped inside the others: their lines "SKIP: reason". The exit status is 0 when none
# failed.
#   scripts/summary.sh BUILD-DIRECTORY STATUS-OF-MAKE
#   scripts/summary.sh BUILD-DIRECTORY --failed    only the names of those that failed
set -euo pipefail
build=$1 status=$2

# The tests with one kind of result, by automake's .trs files.
results() { # REGEX
	find "$build" -name '*.trs' -exec grep -lE "^:global-test-result: ($1)\$" {} + |
		sed "s|^$build/||; s|\.trs\$||" | sort
}

# Reasons, one a line, of what was skipped inside of a test.
skips() { # TEST
	grep -E '^(SKIP|skipped)\b' "$build/$1.log" | grep -vE '^SKIP .*\(exit status: 77\)$' || true
}

stop() {
	echo "== $1"
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
}

if [ "$status" = --failed ]; then
	results "FAIL|XPASS|ERROR" || true
	exit
fi
mapfile -t passed < <(results 'PASS|XFAIL')
mapfile -t failed < <(results 'FAIL|XPASS|ERROR')
mapfile -t skipped < <(results 'SKIP')
[ $((${#passed[@]} + ${#failed[@]})) -gt 0 ] || stop "no test ran"
[ "$status" -eq 0 ] || [ ${#failed[@]} -gt 0 ] || stop "make check failed, and no test did"

inside=0
for test in "${passed[@]}" ${failed[@]+"${failed[@]}"}; do
	mapfile -t reasons < <(skips "$test")
	[ ${#reasons[@]} -gt 0 ] || continue
	echo "-- skipped in $test:"
	printf '%s\n' "${reasons[@]}"
	inside=$((inside + ${#reasons[@]}))
done
for test in ${skipped[@]+"${skipped[@]}"}; do
	echo "-- skipped: $test"
	reason=$(skips "$test")
	# else what it said last: automake's verdict ends the log
	printf '%s\n' "${reason:-$(sed '$d' "$build/$test.log" | tail -n 1)}"
done
for test in ${failed[@]+"${failed[@]}"}; do
	echo "-- FAILED: $test"
	sed '$d' "$build/$test.log" | tail -n 60
done
echo "${#passed[@]} passed, ${#failed[@]} failed, $((${#skipped[@]} + inside)) skipped"
[ ${#failed[@]} -eq 0 ]
