#!/bin/bash
# SPDX-License-Identifier: MIT
# scripts/summary.sh, which no test may fool: over results as automake writes them.
# shellcheck source=tests/integration/check.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/check.bash" || exit 99

# result NAME RESULT EXIT-STATUS TEXT: what a test leaves behind
result() {
	mkdir -p "$(dirname "b/$1")"
	printf '%s\n%s %s (exit status: %d)\n' "$4" "$2" "$1" "$3" >"b/$1.log"
	printf ':test-result: %s\n:global-test-result: %s\n' "$2" "$2" >"b/$1.trs"
}
# summary STATUS-OF-MAKE: in $said, its last line in $last
summary() {
	said=$("$source_dir/scripts/summary.sh" b "$1")
	status=$?
	last=${said##*$'\n'}
}

mkdir b
summary 0
check "no test ran" "1 0 passed, 1 failed, 0 skipped" "$status $last"
result t/whole.sh PASS 0 $'FAIL: not at the beginning SKIP: no\n3 passed, 0 failed, 0 skipped'
result t/unit SKIP 77 $'not this\nno compiler'
summary 0
check "one passed, one skipped" "0 1 passed, 0 failed, 1 skipped" "$status $last"
contains "the reason is what was said last" $'-- skipped: t/unit\nno compiler\n' "$said"
result t/part.sh PASS 0 $'SKIP: no perf\nskipped: no clang\n3 passed, 0 failed, 2 skipped'
result t/none.sh SKIP 77 $'SKIP: no root\n0 passed, 0 failed, 1 skipped'
summary 0
check "checks skipped inside a test that passes" "0 2 passed, 0 failed, 4 skipped" "$status $last"
contains "... and why" $'-- skipped in t/part.sh:\nSKIP: no perf\nskipped: no clang\n' "$said"
contains "the reason of a script" $'-- skipped: t/none.sh\nSKIP: no root\n' "$said"
summary 2
check "make failed, and no test" "1 0 passed, 1 failed, 0 skipped" "$status $last"
result bad.sh FAIL 1 $'SKIP: no java\nFAIL: wrong\n0 passed, 1 failed, 1 skipped'
summary 2
check "one failed" "1 2 passed, 1 failed, 5 skipped" "$status $last"
contains "... and how" "FAIL: wrong" "$said"
check "which ones" "bad.sh" "$("$source_dir/scripts/summary.sh" b --failed)"

# and the end of a script itself
ends() { (source "$source_dir/tests/integration/check.bash"; "$@"; finish); }
# shellcheck disable=SC2317 # called by ends
mixed() {
	check one 1 1
	skip reason
}
check "a script's end" $'SKIP: reason\n1 passed, 0 failed, 1 skipped\n0' "$(ends mixed; echo $?)"
check "... with nothing to go on with" 77 "$(ends skip reason >all; echo $?)"
check "... with a failure" 1 "$(ends bad reason >all; echo $?)"
finish
