#!/bin/bash
# SPDX-License-Identifier: MIT
# Death of either side, or of both: finished experiments survive; without its driver the program
# stops being delayed at once, and runs on to its own end.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

# start_rate BACKEND SECONDS: in the background; sets $driver
start_rate() {
	rm -rf results
	CAUSAL_EXPERIMENT_MIN=0.4 "$causal" -b "$1" --clock real -F "^chosen$" -s 90 -o results -- \
		"$apps/rate" "$2" >out 2>err &
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
	check "$1: lines that are no record" "" "$(grep -v '^{.*}$' results/run-0001.jsonl | head -c 80)"
}

# How long was the program held in a tenth of a second, us, and how many pieces did it do: in the worse of the
# last two before $1 (uptime, s), and on average from half a second later on: who delays looks every 32 ticks
# whether there is still a driver. out: number of the tenth, its end, pieces done, us held, us of CPU time so far.
held() {
	awk -v killed="$1" '
		$2 < killed { last = before; did = pieces; before = $4; pieces = $3 }
		$2 > killed + 0.6 { after += $4; done += $3; n++ }
		END {
			if (last > before) { before = last; pieces = did }
			print int(before), int(n ? after / n : before), pieces, int(n ? done / n : 0)
		}' out
}
# Where the machine is another's for a while, that passes for held; where others have the CPUs, there are few
# pieces. Either shows the end of delays.
ended() { ((held > 2 * after || later > 3 * pieces)); }
# until it is held, or has only a second left
wait_until_held() {
	until grep -q '^40 ' out || (($(tail -n 1 out | cut -d' ' -f4) > LITTLE)); do
		sleep 0.02
	done
}

# did other programs take the CPUs from its two threads?
rate_starved() {
	awk -v cpus="$(nproc)" '{ n++; cpu = $5 } END { exit !(cpu < 85000 * n * (cpus > 1 ? 2 : 1)) }' out
}

LITTLE=10000 # us
find_backends
for backend in "${backends[@]}"; do
	# Where other programs take the CPUs, threads wait for these and owe nothing: three tries for
	# what is about delays, one for all else.
	for try in 1 2 3; do
		start_rate "$backend" 5
		wait_for_records 2
		wait_until_held
		before=$(records experiment)
		kill -9 "$driver"
		killed=$(awk '{ print $1 }' /proc/uptime)
		wait "$driver" 2>/dev/null
		survived "driver killed, $backend" "$before"
		end=$((SECONDS + 20))
		until grep -q '^50 ' out || ((SECONDS > end)); do sleep 0.1; done
		check "driver killed, $backend: the program ends by itself" 50 "$(wc -l <out)"
		read -r held after pieces later <<<"$(held "$killed")"
		((held > LITTLE)) && ended && break
		echo "try $try, $backend: held for $held, then $after us in a tenth of a second; $pieces, then $later pieces"
	done
	if ((held <= LITTLE)) && rate_starved; then
		skip "driver killed, $backend: no delays that could end, as other programs take the CPUs"
	else
		check "driver killed, $backend: held before, and hardly afterwards" "1 1" \
			"$((held > LITTLE)) $(ended; echo $((!$?)))"
	fi

	start_rate "$backend" 30
	wait_for_records 2
	before=$(records experiment)
	kill -9 "$(child)"
	wait "$driver" 2>/dev/null
	check "child killed, $backend: exit status" 137 $?
	survived "child killed, $backend" "$before"
	check "child killed, $backend: profile" 0 "$([[ -s results/profile.json ]]; echo $?)"

	start_rate "$backend" 30
	wait_for_records 2
	before=$(records experiment)
	kill -9 "$driver" "$(child)"
	wait "$driver" 2>/dev/null
	survived "both killed, $backend" "$before"
done
# what a killed driver leaves behind goes with the next one
check "a killed driver's session" 1 "$(find /dev/shm -maxdepth 1 -name "causal-$UID-$driver-*" | wc -l)"
killed=$driver

start_rate "$backend" 30
wait_for_records 2
check "... is removed by the next driver" 0 "$(find /dev/shm -maxdepth 1 -name "causal-$UID-$killed-*" | wc -l)"
check "... whose own is there" 1 "$(find /dev/shm -maxdepth 1 -name "causal-$UID-$driver-*" | wc -l)"
before=$(records experiment)
ignored=0x$(sed -n 's/^SigIgn:[[:space:]]*//p' "/proc/$driver/status")
if ((ignored & 1)); then # it stays so in every child, and nobody is to be hung up
	skip "driver hung up: this runs under nohup"
	kill "$driver"
	wait "$driver" 2>/dev/null
else
	kill -HUP "$driver"
	wait "$driver" 2>/dev/null
	check "driver hung up: exit status" 129 $?
	survived "driver hung up" "$before"
	check "driver hung up: profile" 0 "$([[ -s results/profile.json ]]; echo $?)"
fi

# nobody reads the messages any more; the program finds SIGPIPE as it was
rm -rf results
"$causal" -o results -s 0,50 -- "$apps/processes" work 2> >(exec 0<&-) >out
check "standard error closed: exit status" 0 $?
check "standard error closed: profile" 0 "$([[ -s results/profile.json ]]; echo $?)"
# shellcheck disable=SC2016 # the inner shell's
"$causal" -o results -e -s 0 -- bash -c 'yes | head -n 1; echo "${PIPESTATUS[0]}"' >out 2>err
check "SIGPIPE in the program: as without us" "y 141" "$(tr '\n' ' ' <out | sed 's/ $//')"
finish
