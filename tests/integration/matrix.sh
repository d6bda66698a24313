#!/bin/bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what stands in single quotes is for inner shells
# The programs of matrix.list in surroundings where something is missing: output, exit status and what is
# left in the working directory are as alone in the same surroundings, and the profile is complete or says
# what it lacks. In "make check" one program, with one source of ticks; "make matrix" (MATRIX_ALL=1) has all
# of them, and ends with a table. MATRIX="half_cpu no_proc": these surroundings; MATRIX_ROWS: a pattern for
# lines of matrix.list.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99
all=${MATRIX_ALL:-0}
rows=${MATRIX_ROWS:-$( ((all)) && echo . || echo '^cells work ')}
chmod 777 "$work"

# surroundings NAME WHERE PERF TIMER WORDS...: WORDS stand before the command. WHERE: all (the driver, too) or
# program. PERF, TIMER: "complete", or what has to be said instead (a regular expression).
surroundings() {
	names+=("$1")
	where[$1]=$2 says[$1 perf]=$3 says[$1 timer]=$4 says[$1 trace]=$3 says[$1 sample]=$3
	words[$1]=$(shift 4 && printf '%q ' "$@")
}
# cannot NAME WHY
cannot() { [[ -n ${MATRIX:-} && " $MATRIX " != *" $1 "* ]] || skip "$1: $2"; }
works() { "$@" true >/dev/null 2>&1; }
preload() { # NAME FILE [VARIABLE=VALUE...]
	local found=$2

	[[ $found == */* ]] || found=$(ldconfig -p | sed -n "s|.*$2 .*=> ||p" | head -n 1)
	if [[ -e $found ]]; then
		surroundings "$1" program complete complete env "${@:3}" "LD_PRELOAD=$found"
	else
		cannot "$1" "there is no $2"
	fi
}
library() {
	"${cc[@]}" -std=gnu17 -D_GNU_SOURCE -O2 -fPIC -fno-builtin -shared -pthread "$source_dir/tests/apps/$1.c" \
		-o "$1.so" || bad "cannot build $1.so"
}
declare -A where says words
names=()
as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs)
no_perf='switched off: perf_event_open is not allowed here; use -b auto or -b timer'

# --- who may do what
surroundings as_here all complete complete env
if "${as_nobody[@]}" test -r "$causal" -a -x "$apps/cells" 2>/dev/null; then
	surroundings unprivileged all complete complete "${as_nobody[@]}"
	surroundings memlock_64k all complete complete "${as_nobody[@]}" bash -c 'ulimit -l 64; exec "$@"' bash
elif ((UID)); then
	surroundings memlock_64k all complete complete bash -c 'ulimit -l 64; exec "$@"' bash
else
	cannot unprivileged "nobody may not read $build"
	cannot memlock_64k "nobody may not read $build"
fi
# as perf_event_paranoid 3 and 4, and the filters of containers, do it
surroundings no_perf all complete complete "$apps/limits" seccomp_then
surroundings no_perf_inside program "$no_perf" complete "$apps/limits" seccomp_then
says[no_perf_inside trace]=complete says[no_perf_inside sample]=complete # they choose by themselves

# --- files
surroundings no_home all complete complete env -u HOME -u XDG_CACHE_HOME -u TMPDIR
surroundings bad_home all complete complete env HOME=/nonexistent XDG_CACHE_HOME=/proc/none
surroundings descriptors_16 program complete complete bash -c 'ulimit -n 16; exec "$@"' bash
surroundings address_space all complete complete bash -c 'ulimit -v 400000; exec "$@"' bash
if works unshare -m; then
	surroundings no_proc program 'switched off: /proc does not tell' 'switched off: /proc does not tell' \
		unshare -m bash -c 'mount -t tmpfs none /proc; exec "$@"' bash
	# what can be saved is, and what cannot be, is said
	for size in 4 20 32 64; do
		surroundings "disk_${size}k" all complete complete unshare -m bash -c '
			mount -t tmpfs -o size='"$size"'k none ../results && TMPDIR=$PWD/../results XDG_CACHE_HOME=$TMPDIR "$@"' bash
	done
else
	cannot no_proc "no mount namespaces"
	cannot disk_4k "no mount namespaces"
fi

for size in 20 2000 200000; do
	surroundings "file_${size}k" all complete complete bash -c 'ulimit -f '"$size"'; exec "$@"' bash
done
surroundings ends_closed all complete complete bash -c 'exec "$@" <&- 2>&-' bash
surroundings stack_unlimited all complete complete bash -c 'ulimit -s unlimited; exec "$@"' bash

# --- what programs inherit
if works env --ignore-signal --block-signal; then
	surroundings ignored all complete complete env --ignore-signal
	surroundings child_ignored all complete complete env --ignore-signal=CHLD
	surroundings blocked all complete complete env --block-signal
else
	cannot blocked "env cannot do it"
fi
works setarch -R && surroundings same_addresses all complete complete setarch -R
works chrt -i 0 && surroundings idle all complete complete chrt -i 0

# --- CPUs
group=/sys/fs/cgroup/cpu/causal-matrix-$$
trap 'rm -rf "$work"; rmdir "$group" 2>/dev/null' EXIT
if mkdir "$group" 2>/dev/null && echo 10000 >"$group/cpu.cfs_period_us" && echo 5000 >"$group/cpu.cfs_quota_us"; then
	surroundings half_cpu all complete complete bash -c 'echo $$ >'"$group"'/tasks; exec "$@"' bash
else
	cannot half_cpu "no control group of version 1 can be made"
fi
works taskset -c 0 && surroundings one_cpu all complete complete taskset -c 0

# --- namespaces
if works unshare -pf --mount-proc; then
	surroundings pids all complete complete unshare -pf --mount-proc
	surroundings pids_inside program complete complete unshare -pf
	surroundings container program complete complete unshare -pfmuin --mount-proc
else
	cannot pids "no pid namespaces"
fi
if works unshare -Tf --monotonic 100000; then
	surroundings time all complete complete unshare -Tf --monotonic 100000
	own_time='switched off: the program has a time namespace of its own'
	surroundings time_inside program "$own_time" "$own_time" unshare -Tf --monotonic 100000
	surroundings time_back program "$own_time" "$own_time" unshare -Tf --monotonic -100
else
	cannot time "no time namespaces"
fi

# --- other preloaded libraries
library interposer
library step_clock
preload strict_malloc "$work/interposer.so"
preload clock_steps "$work/step_clock.so"
preload jemalloc libjemalloc.so.2
preload tcmalloc libtcmalloc_minimal.so.4
preload faketime "$(find /usr/lib -name libfaketimeMT.so.1 2>/dev/null | head -n 1)" FAKETIME=-1d

# runs a command in an empty folder: its output is in out, its errors in err, its exit status in $status,
# what it left there in $left
in_folder() {
	rm -rf cell results out err && mkdir -m 777 cell results && cd cell || exit 99
	{ timeout -k 5 120 "$@" >../out 2>../err </dev/null; } 2>/dev/null # the shell's own words, too
	status=$?
	cd .. || exit 99
	left=$(find cell -printf '%M %s %p\n' | sort)
}
# stated NAME BACKEND PROFILE: is the profile as it is to be there? Where a program fails alone, too, nothing is asked.
stated() {
	((alone_status == 0)) || return 0
	case $1 in
	disk_* | file_*) # all could be saved, or it says that it could not
		grep -Eq '[Nn]o space left|ulimit -f|^causal: results are in' err
		return
		;;
	esac
	if [[ ${says["$1 $2"]} != complete ]]; then
		grep -q "${says["$1 $2"]}" err
	elif [[ $2 == @(trace|sample) ]]; then
		[[ -s results/events ]]
	else
		[[ -s results/run-0001.jsonl ]] && (($(total visits) > 0)) && { [[ $3 == any ]] || "$3"; }
	fi
}
# cell NAME BACKEND PROGRAM CASE PROFILE: $alone, $alone_status and $alone_left are as it is without us
cell() {
	local what="$3 $4, $1, $2" try
	local run=("$causal" -o "$work/results" -b "$2" -B MAIN -s "0,50,90" --)

	[[ $2 != @(trace|sample) ]] || run=("$causal" "$2" -o "$work/results" "--sinks=print=$work/results/events" --)
	[[ $1 != no_perf || $2 != perf ]] || run[4]=auto # what is asked for by name is refused, with exit status 2

	if [[ ${where[$1]} == all ]]; then
		run=("${prefix[@]}" "${run[@]}" "$apps/$3" "$4")
	else
		run+=("${prefix[@]}" "$apps/$3" "$4")
	fi
	of[$1 $2]=$((${of[$1 $2]:-0} + 1))
	for try in 1 2 3; do # of what depends on samples
		in_folder "${run[@]}"
		if [[ $1 == @(disk|file)_* && $status == [12] ]] && grep -Eq '^causal: .* (no space left|.*ulimit -f)' err; then
			: # said before the program was started
		elif [[ $status != "$alone_status" || $(<out) != "$alone" || $left != "$alone_left" ]]; then
			bad "$what: exit status $status, alone $alone_status; output and files:"
			diff <(printf '%s\n' "$alone" "$alone_left") <(cat out && printf '%s\n' "$left")
			sed 's/^/  err: /' err | tail -n 5
			return
		fi
		if stated "$1" "$2" "$5"; then
			good
			cells[$1 $2]=$((${cells[$1 $2]:-0} + 1))
			return
		fi
	done
	# where there is too little CPU for a program of half a second, it says so
	if { [[ $1 == @(half_cpu|one_cpu|idle) ]] || starving; } &&
		grep -Eq '^No (result|verdict): (the program ended|cannot tell here: other programs)' err; then
		good
		short[$1 $2]=$((${short[$1 $2]:-0} + 1))
	elif starving; then
		skip "$what: the profile: other programs take the CPUs"
	else
		bad "$what: the profile: expected \"${says["$1 $2"]}\", $5; after $try tries: $(tail -n 1 results/run-0001.jsonl 2>&1)"
		sed 's/^/  err: /' err | tail -n 5
	fi
}

others="cells-work hosts-main_leaves hosts-own_signals limits-lowest_descriptor processes-fork_threads signals-block_all
	signals-eintr exits-abort exits-_exit threads-churn throws-throws"
others=${others//[[:space:]]/ }
declare -A cells of short
# little else than others that are there
nightly="no_home disk_20k disk_32k disk_64k file_2000k file_200000k stack_unlimited ignored same_addresses idle one_cpu
	pids pids_inside time time_back"
nightly=${nightly//[[:space:]]/ }
find_backends
turn=0
for name in "${names[@]}"; do
	if [[ -n ${MATRIX:-} ]]; then
		[[ " $MATRIX " == *" $name "* ]] || continue
	elif ((!all)) && [[ " $nightly " == *" $name "* ]]; then
		continue
	fi
	eval "prefix=(${words[$name]})"
	chosen=$rows
	# where the runtime is off, its memory is not to count either
	[[ $chosen != '^cells work ' || ${says["$name perf"]} == complete ]] || chosen='^cells work |^hosts (lock_all|address_space) '
	# before the loop: within it, the programs would inherit the pipe
	mapfile -t lines < <(grep -Ev '^#| ours$' "$source_dir/tests/integration/matrix.list" | tr -s ' ' | grep -E "$chosen")
	for line in "${lines[@]}"; do
		read -r program case profile <<<"$line"
		for try in 1 2 3; do # alone it must not hang, as libfaketime does now and then
			in_folder "${prefix[@]}" "$apps/$program" "$case"
			((status == 124)) || break
		done
		alone=$(<out) alone_status=$status alone_left=$left
		used=("${backends[@]}")
		[[ $chosen != '^cells work ' ]] || used=("${backends[turn++ % ${#backends[@]}]}")
		# and as causal trace and causal sample run it, some of them
		if { ((all)) || [[ $name == as_here ]]; } && [[ " $others " == *" $program-$case "* ]]; then
			used+=(trace sample)
		fi
		for backend in "${used[@]}"; do
			cell "$name" "$backend" "$program" "$case" "$profile"
		done
	done
done
if ((all)); then
	printf '%-18s %-8s %s\n' surroundings ticks "cells passed"
	for name in "${names[@]}"; do
		for backend in "${backends[@]}" trace sample; do
			[[ -n ${of[$name $backend]:-} ]] || continue
			printf '%-18s %-8s %d of %d' "$name" "$backend" $((${cells[$name $backend]:-0} + ${short[$name $backend]:-0})) \
				"${of[$name $backend]}"
			[[ ${says[$name $backend]} == complete ]] || printf ', all say "%s"' "${says[$name $backend]}"
			[[ -z ${short[$name $backend]:-} ]] || printf ', %d say that they had too little CPU' "${short[$name $backend]}"
			echo
		done
	done
fi
finish
