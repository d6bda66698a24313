#!/bin/bash
# SPDX-License-Identifier: MIT
# kills.sh [SEED]: the driver, its program, or both are killed at random moments. The runs that were finished
# before still give a profile, and so do the experiments that had ended; the next causal leaves nothing of
# the dead in /dev/shm. KILLS: how many times.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

seed=${1:-$$}
RANDOM=$seed
echo "seed $seed"
sessions() { find /dev/shm -maxdepth 1 -name "causal-$UID-$1-*" | wc -l; }
whole_records() { cat results/run-*.jsonl 2>/dev/null | grep -c '^{.*}$'; }

mkdir results
cp "$source_dir/tests/fuzz/cases/results/sweep.jsonl" results/run-0001.jsonl
killed=()
for ((k = 1; k <= ${KILLS:-10}; k++)); do
	delay=$((RANDOM % 800)) who=$((RANDOM % 3))
	what="kill $k of $seed: $(cut -d' ' -f$((who + 1)) <<<"driver program both") after $delay ms"
	"$causal" -n 2 -s 0,50 -o results -- "$apps/rate" 0.4 >out 2>err &
	driver=$!
	sleep "$(printf '0.%03d' "$delay")"
	child=$(pgrep -P "$driver" -x rate)
	before=$(whole_records)
	((who == 1)) || kill -9 "$driver" 2>/dev/null
	((who == 0)) || [[ -z $child ]] || kill -9 "$child" 2>/dev/null
	wait "$driver" 2>/dev/null
	status=$?
	# 137 is the killed program's, too
	((status <= 2 || status == 137)) || bad "$what: exit status $status: $(tail -n 2 err)"
	killed+=("$driver")
	at_least "$what: records" "$before" "$(whole_records)"
	"$causal" export results --format json >profile 2>err.export
	check "$what: profile: $(cat err.export)" 0 $?
	grep -q '"runs":' profile || bad "$what: no runs in the profile"
	# each causal removes what it finds of the dead; so does this one
	"$causal" -q -e -s 0 -o later -- true >/dev/null 2>&1
	check "$what: left in /dev/shm" 0 "$(sessions "$driver")"
	# one run file more each time would make this slow
	rm -rf later results/run-000[2-9].jsonl results/profile.* results/progress.json
done
finish
