# SPDX-License-Identifier: MIT
# Shared by the script tests: a folder of their own, surroundings that are always the same, and
# checks that are counted. Sourced, not run. A script ends with `finish`; scripts/test.sh counts its
# lines that begin with "SKIP:".
# shellcheck shell=bash disable=SC2034 # what is not used here is for the scripts that source this
set -u
build=${CA_TOP_BUILDDIR:-$PWD}
source_dir=${CA_TOP_SRCDIR:-$PWD}
causal=$build/driver/causal
read -ra cc <<<"${CC:-cc}"
read -ra cxx <<<"${CXX:-c++}"
python=${CA_PYTHON3:-python3}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
for name in $(compgen -e | grep -E '^(CAUSAL|COZ)_') LD_PRELOAD; do
	unset "$name"
done
# nor does it matter what make's job server or a terminal left open (255 is bash's own, this file)
for name in /proc/$$/fd/*; do
	name=${name##*/}
	((name <= 2 || name == 255)) || exec {name}>&-
done
# each program is run once, unless a test says otherwise
export CAUSAL_ITERATIONS=1
# nothing is left behind in the caller's home, which may not even exist
export LC_ALL=C XDG_CACHE_HOME=$work/.cache
passed=0 failed=0 skipped=0

good() { passed=$((passed + 1)); }
bad() {
	failed=$((failed + 1))
	printf 'FAIL: %s\n' "$*"
}
# check NAME EXPECTED ACTUAL
check() {
	if [[ $2 == "$3" ]]; then
		good
	else
		bad "$1"$'\n'"  expected: $2"$'\n'"  got:      $3"
	fi
}
# contains NAME PART TEXT
contains() {
	if [[ $3 == *"$2"* ]]; then
		good
	else
		bad "$1"$'\n'"  expected somewhere: $2"$'\n'"  got: $3"
	fi
}
lacks() {
	if [[ $3 != *"$2"* ]]; then
		good
	else
		bad "$1"$'\n'"  expected nowhere: $2"$'\n'"  got: $3"
	fi
}
# at_least NAME LEAST ACTUAL
at_least() {
	if [[ ${3:-} =~ ^[0-9]+$ ]] && (($3 >= $2)); then
		good
	else
		bad "$1: expected $2 or more, got '${3:-}'"
	fi
}
skip() {
	skipped=$((skipped + 1))
	printf 'SKIP: %s\n' "$*"
}
# starved PERCENT DIR: did other programs take the CPUs from the last run in DIR, a program that uses
# that much of a CPU if it can?
starved() {
	grep -h '"type":"end"' "$2"/run-*.jsonl | tail -n 1 |
		sed 's/.*"runtime":\([0-9]*\).*"cpu_ns":\([0-9]*\).*/\1 \2/' |
		awk -v percent="$1" -v cpus="$(nproc)" '{
			most = percent < 100 * cpus ? percent : 100 * cpus
			exit !(100 * $2 < 0.85 * most * $1)
		}'
}
finish() {
	printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
	((failed == 0)) || exit 1
	((passed > 0)) || exit 77
	exit 0
}
# The preloaded object cannot come before a sanitizer's.
needs_runtime() {
	[[ -n ${CA_SANITIZER:-} ]] || return 0
	skip "the runtime does not go with $CA_SANITIZER"
	finish
}
