#!/bin/bash
# Death of either side, or of both: finished experiments survive; without its driver the program
# stops being delayed at once, and runs on to its own end.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

# start_rate BACKEND SECONDS: in the background; sets $driver
start_rate() {
	rm -rf results
	CAUSAL_EXPERIMENT_MIN=0.4 "$causal" -b "$1" -F '^chosen$' -s 90 -o results -- "$apps/rate" "$2" >out 2>err &
	driver=$!
}
# child of the driver, once it is there
child() { pgrep -P "$driver" -x rate; }
wait_for_records() {
	local end=$((SECONDS + 20))

	while ((SECONDS < end)); do
		[[ -f results/run-0001.jsonl ]] && (($(records experiment) >= $1)) && return
		sleep 0.05
	done
	bad "no $1 experiments within 20 s"
}
# Every line of the file is a whole record, and at least $2 are experiments.
survived() {
	at_least "$1: experiments in the file" "$2" "$(records experiment)"
	is "$1: lines that are no record" "" "$(grep -v '^{.*}$' results/run-0001.jsonl | head -c 80)"
}

# yes, no or "cannot tell": was the program at full speed soon after $1 (uptime, s)?
# Tenths of a second: while delayed, from 100 ms (and the rest of a tenth) after the death on,
# and at the end, where nothing delays. out: number, its uptime, pieces done.
soon_at_full_speed() {
	awk -v killed="$1" '
		$2 < killed - 0.2 && $1 > 2 { slow += $3; slows++ }
		$2 > killed + 0.1 && $2 < killed + 0.6 { soon += $3; soons++ }
		$1 >= 40 { end += $3; ends++ }
		END {
			if (!slows || !soons || !ends) { print "cannot tell"; exit }
			slow /= slows; soon /= soons; end /= ends
			if (soon > 0.5 * end && slow < 0.8 * end) print "yes"
			else print "no: " slow " before, " soon " soon after, " end " at the end"
		}' out
}

for backend in $(backends); do
	# Other programs may take the CPU at any moment: three tries for what is about speed, one
	# for all else.
	for try in 1 2 3; do
		start_rate "$backend" 5
		wait_for_records 2
		before=$(records experiment)
		kill -9 "$driver"
		killed=$(awk '{ print $1 }' /proc/uptime)
		wait "$driver" 2>/dev/null
		survived "driver killed, $backend" "$before"
		end=$((SECONDS + 20))
		until grep -q '^49 ' out || ((SECONDS > end)); do sleep 0.1; done
		is "driver killed, $backend: the program ends by itself" 50 "$(wc -l <out)"
		verdict=$(soon_at_full_speed "$killed")
		[[ $verdict == yes ]] && break
		echo "try $try, $backend: $verdict"
	done
	is "driver killed, $backend: soon at full speed" yes "$verdict"

	start_rate "$backend" 30
	wait_for_records 2
	before=$(records experiment)
	kill -9 "$(child)"
	wait "$driver" 2>/dev/null
	is "child killed, $backend: exit status" 137 $?
	survived "child killed, $backend" "$before"
	is "child killed, $backend: profile" 0 "$([[ -s results/profile.json ]]; echo $?)"

	start_rate "$backend" 30
	wait_for_records 2
	before=$(records experiment)
	kill -9 "$driver" "$(child)"
	wait "$driver" 2>/dev/null
	survived "both killed, $backend" "$before"
done
finish
