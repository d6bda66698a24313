#!/bin/bash
# SPDX-License-Identifier: MIT
# One call of the driver fails, each in its turn: whatever it is, the driver neither dies of a signal nor hangs,
# and says so if a result is missing or not as it should be; run files stay readable. In "make check" a part
# of the calls, in "make faults" all of them.
# shellcheck source=tests/integration/check.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/check.bash" || exit 99
needs_runtime
all=${FAULTS_ALL:-0} # 1: each call
slice=${FAULTS_SLICE:-0/1} # K/N: of these, each Nth

"${cc[@]}" -shared -fPIC -O1 -o faults.so "$source_dir/tests/faults/faults.c" -ldl || exit 99
mkdir before
cp "$source_dir/tests/fuzz/cases/results/sweep.jsonl" before/run-0001.jsonl
for folder in sampled again; do
	"$causal" sample -q -o "$folder" -- "$build/tests/apps/rate" 0.1 >/dev/null 2>&1 || bad "cannot sample"
done

# Each command makes its result in out/ or prints it; afterwards "result" prints what there is of it.
prepare() {
	rm -rf out cache printed
	mkdir out
	export XDG_CACHE_HOME=$work/cache
	case $1 in
	whole | inside | report) cp before/run-0001.jsonl out ;;
	esac
}
run() {
	case $1 in
	whole) set -- -e -s 50 -o out -- true ;;
	sample) set -- sample -o out -- "$build/tests/apps/rate" 0.02 ;;
	inside) set -- -s 50 -o out -- "$build/tests/apps/rate" 0.1 ;;
	index) set -- -P list -- "$build/tests/apps/rate" ;;
	report) set -- report out ;;
	merge) set -- merge before -o out ;;
	compare) set -- compare before before ;;
	diff) set -- diff sampled again ;;
	pprof | tree) set -- export sampled --format "$1" ;;
	*) set -- export before --format "$1" ;;
	esac
	timeout -k 5 30 "$causal" "$@" >printed 2>err
}
result() {
	case $1 in
	whole | inside) find out -name 'run-*' -o -name profile.json | sort && tail -c 2 out/profile.json ;;
	report) cat out/report.html ;;
	sample) find out -name sample.json -size +1 ;;
	merge) cat out/run-*.jsonl out/profile.json ;;
	*) cat printed ;;
	esac 2>/dev/null
}
# inject COMMAND KIND N
inject() {
	local status what="$1, $2 $3"

	prepare "$1"
	LD_PRELOAD=$work/faults.so FAULT_AT=$2:$3 run "$1"
	status=$?
	((status != 0)) || result "$1" >now
	injected=$((injected + 1))
	if ((status > 2 && status != 126 && status != 127)); then
		bad "$what: exit status $status: $(tail -n 3 err)"
	elif ((status > 0)) && ! grep -q '^causal: ' err; then
		bad "$what: exit status $status without a message"
	elif ((status == 0)) && ! cmp -s now "expected.$1" && cmp -s <(said) "said.$1"; then
		bad "$what: another result, and not a word of it: $(diff now "expected.$1" | head -n 3)"
	elif [[ $1$2 =~ ^whole(memory|text)$ && $status == 0 ]] && ! grep -Eq 'piece|no memory for the table' err; then
		bad "$what: no table, and not a word of it"
	elif [[ $1 == whole || $1 == inside ]] && ! "$causal" export out --format json >/dev/null 2>err.after; then
		bad "$what: nothing can be read any more: $(cat err.after)"
	else
		good
	fi
}
# messages, but for what differs from run to run
said() { sed -E 's/[0-9]+(\.[0-9]+)?/N/g' err; }
# sweep_of COMMAND KIND STEP
sweep_of() {
	local n total

	prepare "$1"
	LD_PRELOAD=$work/faults.so FAULT_AT=$2:0 FAULT_COUNT=$work/count run "$1"
	result "$1" >"expected.$1"
	said >"said.$1"
	total=$(<count)
	for ((n = 1; n <= total; n += n < (all ? 20 : 5) ? 1 : $3)); do
		((n % ${slice#*/} != ${slice%/*})) || inject "$1" "$2" "$n"
	done
}

injected=0
for command in ${FAULTS:-whole inside sample index report merge compare json coz csv markdown folded speedscope diff pprof tree}; do
	sweep_of "$command" system $((all ? 1 : 13))
	sweep_of "$command" text 1
	sweep_of "$command" memory $((all ? 1 : 173))
done
echo "$injected calls failed"
finish
