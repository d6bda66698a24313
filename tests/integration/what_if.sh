#!/bin/bash
# SPDX-License-Identifier: MIT
# Several functions sped up at once: what is asked, which experiments are made, what is shown. Whether the
# numbers are right: tests/accuracy/what_if.sh.
# Run by make, which says where the trees are.
# shellcheck source=tests/integration/check.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/check.bash" || exit 99

# ---- what is asked
usage() { # what the message says, arguments
	local says=$1
	shift
	"$causal" what-if "$@" >/dev/null 2>err
	check "what-if $*: exit status" 2 "$?"
	contains "... and why" "$says" "$(cat err)"
}
usage "say first"
usage "say first" -n 3
usage "NAME=PERCENT" 'a' -- true
usage "NAME=PERCENT" 'a=20' -- true
usage "NAME=PERCENT" 'a=0,b=20' -- true
usage "there twice" 'a=10,a=20' -- true
if [[ -n ${CA_SANITIZER-} ]]; then
	finish
fi

# ---- experiments
"${cc[@]}" -D_GNU_SOURCE -DUSE_CAUSAL -g -O2 -I"$source_dir/include" -o barrier \
	"$source_dir/tests/accuracy/programs/barrier.c" -lpthread || exit 1
short=(--experiment-min 0.03 --warm-up 5)
timeout 100 "$causal" what-if 'region_fast=20,region_slow=50' "${short[@]}" -n 1 -o both -- ./barrier --seconds 5 \
	>/dev/null 2>err
check "exit status" 0 "$?"
experiments() { # region, speedup
	grep -c "\"type\":\"experiment\".*\"name\":\"$1\".*\"speedup\":$2[,.]" both/run-0001.jsonl
}
at_least "experiments with one alone" 1 "$(experiments region_slow 50)"
at_least "... with the other one" 1 "$(experiments region_fast 20)"
at_least "... with both" 1 "$(experiments region_fast=20,region_slow=50 50)"
at_least "... and without" 1 "$(experiments '[^"]*' 0)"
check "no other speedups" 0 "$(grep '"type":"experiment"' both/run-0001.jsonl |
	grep -Evc '"speedup":(0|20|50)[,.]')"
for line in 'region_slow 50 % less' 'region_fast 20 % less' 'all of them at once' 'the sum of each alone'; do
	contains "the answer has '$line'" "$line" "$(cat err)"
done
check "what was asked for is no row at 50 % less" "" "$("$causal" export both --format markdown | grep 'region&#95;fast=20')"
check "... nor in a comparison" "" "$("$causal" compare both both 2>&1 | grep 'region_fast=20')"
check "... nor a curve" "" "$("$causal" export both --format csv | grep 'region_fast=20.*,curve,')"

timeout 100 "$causal" what-if 'region_slow=50,region_none=20' "${short[@]}" -n 1 -o none -- ./barrier --seconds 1 >/dev/null 2>err
contains "a name that is in no sample" "no sample shows region_none" "$(cat err)"
timeout 100 "$causal" what-if 'region_slow=50,region_fats=20' "${short[@]}" -n 3 -o typo -- ./barrier --seconds 1 >/dev/null 2>err
check "a name with a mistake: exit status" 2 $?
contains "... what was meant" "no code in scope is called region_fats; did you mean region_fast?" "$(cat err)"
check "... after the first run" 1 "$(echo typo/run-*.jsonl | wc -w)"
finish
