# SPDX-License-Identifier: MIT
# Shared by the rt_*.sh tests: what happens to programs that causal runs. Sourced, not run.
# shellcheck shell=bash disable=SC2034 # what is not used here is for the scripts that source this
# shellcheck source=tests/integration/check.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/check.bash" || exit 99
needs_runtime
apps=$build/tests/apps
# short ones, so that each program sees many begin and end
export CAUSAL_EXPERIMENT_MIN=0.05

# profile [OPTIONS] -- COMMAND...: runs it; its output is in out, causal's (and its errors) in
# err, the records in results/run-0001.jsonl, the exit status in $status.
profile() {
	last=("$@")
	rm -rf results out err
	timeout -k 5 "${limit:-60}" "$causal" -o results "$@" >out 2>err
	status=$?
}
records() { grep -c "\"type\":\"$1\"" results/run-0001.jsonl; }
# number of a field of the last record
total() { tail -n 1 results/run-0001.jsonl | grep -o "\"$1\":[0-9]*" | tail -n 1 | cut -d: -f2; }
# Samples, most of them in the code that is in scope?
sampled() { (($(total in_scope) >= 3 && 2 * $(total in_scope) > $(total samples))); }
# And an experiment that ended, in which the selected code ran?
profiled() { sampled && grep -q '"type":"experiment".*"s_time":[1-9]' results/run-0001.jsonl; }
# Do other programs take the CPUs at this moment? A loop that only computes, then takes much longer
# than it has a CPU.
starving() {
	local TIMEFORMAT='%R %U' times
	times=$({ time for ((i = 0; i < 100000; i++)); do :; done; } 2>&1)
	awk "BEGIN { exit !(${times% *} > 1.5 * ${times#* }) }"
}
# was sampled|profiled NAME: of what was profiled last. A short run has too little of that where
# other programs take the CPU: three tries. But some samples there always are. With -B MAIN, as
# without it the first 0.2 s tell what is in scope.
was() {
	"$1" || profile "${last[@]}"
	"$1" || profile "${last[@]}"
	if "$1"; then
		good
	elif (($(total in_scope) > 0)) && starving; then
		skip "$2: being $1: other programs take the CPUs"
	else
		bad "$2: not $1: $(tail -n 1 results/run-0001.jsonl)"
	fi
}
# The sources of ticks that work here: sets $backends.
find_backends() {
	backends=(perf timer)
	"$causal" -o probe -b perf -e -s 0 -- "$apps/exits" return >/dev/null 2>probe.err
	if grep -q 'perf_event_open is not allowed' probe.err; then
		backends=(timer)
		skip "ticks by perf: perf_event_open is not allowed here"
	fi
	rm -rf probe
}
# explain STATUS: what a case printed that ended with another one
explain() {
	((status == $1)) || sed 's/^/  out: /' out | tail -n 3
	((status == $1)) || sed 's/^/  err: /' err | tail -n 3
}
