#!/bin/bash
# Libraries that come, go and come back; that start threads before us; other preloaded ones;
# programs into which nothing can be preloaded.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

# library NAME: builds NAME.so of tests/apps/NAME.c
library() {
	"$cc" -std=gnu17 -D_GNU_SOURCE -g -O2 -fPIC -fno-builtin -shared -pthread -I"$source_dir" \
		"$source_dir/tests/apps/$1.c" -o "$1.so" || bad "cannot build $1.so"
}
library plugin
library early
library interposer

for backend in $(backends); do
	for name in open reopen churn; do
		profile -b "$backend" -B 'plugin\.so' -B MAIN -s 0,50 -- "$apps/libraries" "$name" "$work/plugin.so"
		is "$name with $backend: exit status" 0 "$status"
		explain 0
	done
	at_least "its code is selected, $backend" 1 "$(grep -c '"binary":"[^"]*plugin.so"' results/run-0001.jsonl)"
	# without experiments all visits are in the sum
	profile -w 1000 -b "$backend" -B 'plugin\.so' -- "$apps/libraries" reopen "$work/plugin.so"
	# of the pieces of work; less than a quarter if only the first of four openings counted
	at_least "a library opened four times, $backend: visits in percent" 40 \
		$(($(total visits) * 100 / $(sed -n 's/^pieces //p' out)))

	profile -b "$backend" -s 0,50 -- env LD_PRELOAD="$work/early.so" "$apps/processes" work
	is "threads before our constructor, $backend: exit status" 0 "$status"
	explain 0
	is "threads before our constructor, $backend: output" "work: good" "$(cat out)"
	at_least "threads before our constructor, $backend: visits" 1000 "$(total visits)"

	for name in churn cancel; do
		LD_PRELOAD=$work/interposer.so profile -b "$backend" -s 0,50 -- "$apps/threads" "$name"
		is "$name with another preloaded library, $backend: exit status" 0 "$status"
		explain 0
	done
done

for kind in -static -static-pie; do
	if "$cc" -std=gnu17 -D_GNU_SOURCE -g -O2 "$kind" -fPIE -I"$source_dir" -o "app$kind" \
		"$source_dir/tests/apps/exits.c" 2>/dev/null; then
		profile -- "./app$kind" return
		is "$kind: exit status" 3 "$status"
		is "$kind: says why" 1 "$(grep -c 'is statically linked: the runtime cannot be preloaded' err)"
	else
		skip "cannot link with $kind"
	fi
done
finish
