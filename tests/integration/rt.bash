# Shared by the rt_*.sh tests: what happens to programs that causal runs. Sourced, not run.
# shellcheck shell=bash
set -u
build=${CA_TOP_BUILDDIR:-$PWD}
# shellcheck disable=SC2034 # for the scripts that source this
source_dir=${CA_TOP_SRCDIR:-$PWD}
causal=$build/driver/causal
apps=$build/tests/apps
# shellcheck disable=SC2034
cc=${CC:-gcc}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
export LC_ALL=C
for name in $(compgen -e | grep -E '^(CAUSAL|COZ)_') LD_PRELOAD; do
	unset "$name"
done
# short ones, so that each program sees many begin and end
export CAUSAL_EXPERIMENT_MIN=0.05
passed=0 failed=0 skipped=0

good() { passed=$((passed + 1)); }
bad() {
	failed=$((failed + 1))
	printf 'FAIL: %s\n' "$*"
}
# is NAME EXPECTED ACTUAL
is() {
	if [[ $2 == "$3" ]]; then
		good
	else
		bad "$1: expected '$2', got '$3'"
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
finish() {
	printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
	((failed == 0)) || exit 1
	((passed > 0)) || exit 77
	exit 0
}
# The preloaded object cannot come before a sanitizer's.
if [[ -n ${CA_SANITIZER:-} ]]; then
	skip "the runtime does not go with $CA_SANITIZER"
	finish
fi

# profile [OPTIONS] -- COMMAND...: runs it; its output is in out, causal's (and its errors) in
# err, the records in results/run-0001.jsonl, the exit status in $status.
profile() {
	rm -rf results out err
	timeout -k 5 "${limit:-60}" "$causal" -o results "$@" >out 2>err
	status=$?
}
records() { grep -c "\"type\":\"$1\"" results/run-0001.jsonl; }
# number of a field of the last record
total() { tail -n 1 results/run-0001.jsonl | grep -o "\"$1\":[0-9]*" | tail -n 1 | cut -d: -f2; }
# The backends that work here.
backends() {
	if "$causal" -o probe -b perf -e -s 0 -- "$apps/exits" return >/dev/null 2>probe.err ||
		! grep -q 'perf_event_open is not allowed' probe.err; then
		echo perf timer
	else
		echo timer
	fi
	rm -rf probe
}
# explain STATUS: what a case printed that ended with another one
explain() {
	((status == $1)) || sed 's/^/  out: /' out | tail -n 3
	((status == $1)) || sed 's/^/  err: /' err | tail -n 3
}
