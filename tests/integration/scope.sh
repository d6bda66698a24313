#!/bin/bash
# SPDX-License-Identifier: MIT
# The scope: which binaries are taken in where none are named, what is said of it, and what -P list
# shows of a program and its libraries. Nothing here depends on how fast the machine is: programs run
# for a given CPU time, most of it in one place.
# shellcheck source=tests/integration/check.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/check.bash" || exit 99
needs_runtime
apps=$source_dir/tests/apps
export CAUSAL_EXPERIMENT_MIN=0.05

# run OPTION... -- COMMAND: results in out/, what the driver says in the file `said`
run() {
	rm -rf out
	timeout -k 5 100 "$causal" -s 0,50 -o out "${point[@]}" "$@" >/dev/null 2>said
}
point=(-P '^(library|library_libc|libc|inlined)$') # a unit of the program
line() { grep '^causal: scope: ' said; }
lines() { grep -c '^causal: scope: ' said; }
# binaries N: those of the code that run N experimented with, one a line
binaries() { grep '"type":"experiment"' "out/run-000$1.jsonl" | sed -n 's/.*"binary":"\([^"]*\)".*/\1/p' | sort -u | xargs -rn1 basename; }
# regions N: its code
regions() { grep '"type":"\(experiment\|samples\)"' "out/run-000$1.jsonl" | sed -n 's/.*"region":{"name":"\([^"]*\)".*/\1/p' | sort -u | tr '\n' ' '; }

[[ $("${cc[@]}" -dumpmachine) == x86_64* ]] || { skip "x86-64 only"; finish; }
build_library() { # NAME OPTION...
	local name=$1
	shift
	"${cc[@]}" -O2 -shared -fPIC "$@" -Wl,-soname,libwork.so.1 -o "$name" "$apps/scope_library.c" || exit 1
}
mkdir plain stripped
build_library plain/libwork.so.1 -g
build_library stripped/libwork.so.1 -s
build_library late.so -g -DNAME=late
"${cc[@]}" -g -O2 -o app "$apps/scope.c" plain/libwork.so.1 -ldl -Wl,-rpath,"$work/plain" || exit 1
"${cc[@]}" -g -O2 -o bare "$apps/scope.c" stripped/libwork.so.1 -ldl -Wl,-rpath,"$work/stripped" && strip bare || exit 1

# ---- the work is in a library
run -n 2 -FE '^(work|library)$' -- ./app library 1
check "a library: exit status" 0 $?
contains "a library: it is taken" "libwork.so.1 " "$(line)"
check "... beside the program" 1 "$(line | grep -cE "app (<1|[1-4]) % of the CPU samples")" # a few are
check "... told once" 1 "$(lines)"
contains "... its functions are seen" "churn" "$(regions 1)"
contains "... and selected in the first run" libwork.so.1 "$(binaries 1)"
contains "... and in the second" libwork.so.1 "$(binaries 2)"
contains "... and it is on record" '"in_scope":true' "$(grep -h '"type":"scope".*libwork.so.1"' out/run-0002.jsonl)"
if "${CA_PYTHON_JSONSCHEMA:-python3}" -c 'import jsonschema' 2>/dev/null; then
	check "... as the schema has it" "" "$("${CA_PYTHON_JSONSCHEMA:-python3}" - "$source_dir/doc/run.schema.json" <<'PY' 2>&1
import json, sys
from jsonschema import Draft7Validator
schema = Draft7Validator(json.load(open(sys.argv[1], encoding="utf-8")))
for line in open("out/run-0002.jsonl", encoding="utf-8"):
    for error in schema.iter_errors(json.loads(line)):
        print(error.message)
PY
)"
else
	skip "the schema (no python3-jsonschema)"
fi
contains "... they are in the profile" '"churn"' "$(cat out/profile.json)"
point=(-P 'libwork.so!churn')
run -n 2 -F '^(churn|nothing)$' -- ./bare library 1
contains "stripped: it is taken" "libwork.so.1 " "$(line)"
contains "... and selected" libwork.so.1 "$(binaries 1)"
point=(-P '^(library|library_libc|libc|inlined)$')
run -n 2 -B MAIN -- ./app library 1
check "-B MAIN: the program alone" "" "$(line)"
lacks "... and nothing else is selected" libwork.so.1 "$(binaries 1; binaries 2)"
lacks "... or seen" churn "$(regions 1)"
run -BE libwork -- ./app library 1
contains "-BE: it is left out" "left out: libwork.so.1 " "$(line)"
lacks "... and not selected" churn "$(regions 1)"

# chosen SEED WANTED PROGRAM: the binary whose code is drawn, by the samples of some ms: where others have the CPUs,
# they may say something else
chosen() {
	local try
	for try in 1 2 3; do
		run -e -n 1 --seed "$1" -FE '^(work|library|mixed)$' -- "$3" mixed 1
		[[ $(binaries 1) == "$2" ]] && break
		echo "chosen, $3, try $try: $(binaries 1)" >&2
	done
	binaries 1
}
# nothing is chosen before: with this seed the library wins, without it only the program is there
check "code is chosen when it is known what is in scope" libwork.so.1 "$(chosen 16 libwork.so.1 ./app)"
# ... and the choice does not depend on where the program lies: with this seed it is the program's
mkdir elsewhere
cp app elsewhere/
for program in ./app elsewhere/app; do
	check "$program: the choice of a seed" app "$(chosen 33 app "$program")"
done
# ... and no stack that was taken before is lost
saved=("${point[@]}") point=(--progress=none)
run -- ./app library 1
point=("${saved[@]}")
check "stacks are held back, not lost" yes "$(tail -n 1 out/run-0001.jsonl |
	sed 's/.*"samples":\([0-9]*\),"in_scope":\([0-9]*\).*/\1 \2/' |
	awk '{ print ($1 > 30 && 100 * $2 >= 95 * $1 ? "yes" : $0) }')"

# ---- most of the time is spent in libc
run -- ./app libc 1
contains "libc: it is left out" "left out: libc.so" "$(line)"
contains "... and named" "' adds it)" "$(line)"
remedy=$(line | sed -n "s/.*(-B '\([^']*\)' adds it)/\1/p")
lacks "... and not selected" libc.so "$(binaries 1)"
run -B "$remedy" -- ./app libc 1
contains "... what is said brings it in" libc.so "$(grep -h '"type":"samples"' out/run-0001.jsonl | head -50)"
# its callers in a library are as much that library's business
run -- ./app memset 1
contains "a library that calls libc: it is taken" "libwork.so.1 " "$(line)"
contains "... and libc is not" "left out: libc.so" "$(line)"

# ---- whoever runs it, and whenever it comes
run -FE '^(work|library)$' -- sh -c './app library 0.7; ./app library 0.7'
contains "children: it is taken" "libwork.so.1 " "$(line)"
contains "... and selected" libwork.so.1 "$(binaries 1)"
printf '#include <unistd.h>\nint main(int n, char **v) { return n > 1 ? execvp(v[1], v + 1) : 1; }\n' >starts.c
"${cc[@]}" -O2 -o starts starts.c || exit 1
run -n 2 -F '^churn$' -- ./starts ./app library 1
contains "-F names code of the program that it starts" churn "$(regions 2)"
run -F '^nothing_like_it$' -- ./starts ./app library 1
check "... if there is such code" 2 $?
contains "... and says so" "nothing in ./starts is in scope" "$(cat said)"
run -- ./app fork 1
contains "fork: it is taken" "libwork.so.1 " "$(line)"
run -- ./app late 1.5 "$work/late.so"
contains "opened in the middle: it is taken" "late.so " "$(line)"
contains "... and seen" late "$(regions 1)"
run -n 3 -- ./app library 0.05
check "short runs: told once" 1 "$(lines)"
contains "... with the library" "libwork.so.1 " "$(line)"
contains "... which is seen" churn "$(regions 3)"
run -n 3 --count-only -- ./app library 0.05
check "--count-only: in short runs, too, no code is selected" "" "$(grep -h '"region":{' out/run-*.jsonl | grep '"experiment"')"
run -e -n 2 -FE '^(work|library)$' -- ./app library 0.5
contains "-e: it is taken" "libwork.so.1 " "$(line)"
check "... its code is the one of a whole run" libwork.so.1 "$(binaries 2)"
"$causal" -s 0,50 -o single --single -- ./app library 1 >/dev/null 2>said
for ((i = 0; i < 50; i++)); do
	[[ -e single/profile.json ]] && break
	sleep 0.1
done
contains "--single: it is taken" "libwork.so.1 " "$(line)"

# ---- lines
run -m line -- ./app library 1
contains "lines: it is taken" "libwork.so.1 " "$(line)"
contains "... and seen" scope_library.c: "$(regions 1)"
cp stripped/libwork.so.1 plain/
run -m line -- ./app library 1
contains "without lines: it is not taken" "left out: libwork.so.1 " "$(line)"
contains "... and why" "no line information" "$(line)"

# ---- -F: code that is inlined everywhere, and code of a library
build_library plain/libwork.so.1 -g
run -F '^always_inlined$' -- ./app inlined 1
check "-F an inlined function: exit status" 0 $?
check "... which is what is seen" "always_inlined " "$(regions 1)"
run -F '^churn$' -- ./app library 1
check "-F a function of a library: exit status" 0 $?
check "... which is what is seen" "churn " "$(regions 1)"
point=(-P '^blink$')
run -F '^blink$' -- ./app rare 2
check "-F a function that no sample meets: it is tried" "blink " "$(regions 1)"
point=(-P '^(library|library_libc|libc|inlined)$')
run -F '^nowhere$' -- ./app library 1
check "-F nothing: exit status" 2 $?
run -F '^chrun$' -- ./app library 1
check "-F a misspelt function: exit status" 2 $?
run -F blnik -- ./app library 1
check "-F a misspelt function" "causal: nothing in ./app matches -F 'blnik'; did you mean blink?" "$(cat said)"
run -S scop.c -- ./app library 1
check "-S a misspelt file: exit status" 2 $?
check "... which is meant" "causal: nothing in ./app matches -S 'scop.c'; did you mean scope.c?" "$(cat said)"
run -B MIAN -- ./app library 1
check "-B a binary that is not there: exit status" 2 $?
contains "... which is told" "-B 'MIAN' matches no binary that the program has loaded" "$(cat said)"
run -n 3 -B appp -- ./app library 0.2
check "-B a misspelt program: exit status, runs" "2 1" "$? $(find out -name 'run-*' | wc -l)"
contains "... which is meant" "did you mean app?" "$(cat said)"

# ---- main is no function of function mode, and what runs in it is told
cat >in_main.c <<'END'
static volatile long sum;
static __attribute__((noinline)) void beside(void)
{
	for (long i = 0; i < 200000; i++)
		sum += i;
}
int main(int argc, char **argv)
{
	for (long i = 0; i < 200000000; i++)
		sum += argc > 1 && i % 400000 == 0 ? (beside(), *argv[1]) : i;
}
END
"${cc[@]}" -g -O1 -o in_main in_main.c || exit 1
point=()
run -F '^main$' -- ./in_main
check "-F main: exit status" 2 $?
contains "... what to do" "try its lines: causal -m line -F '^main\$' -- ./in_main" "$(cat said)"
run -- ./in_main
contains "all in main: the reason" "nearly all samples are in main itself" "$(cat said)"
contains "... what to do" "causal -m line -F '^main\$' -o out-lines -- ./in_main" "$(cat said)"
run -- ./in_main some
contains "much of it in main is told" "of the samples are in main itself, which is no row" "$(cat said)"

# ---- -P list
list() { "$causal" "$@" 2>said; }
all=$(list -P list -- ./bare)
check "list, stripped: exit status" 0 $?
contains "... functions" sub_ "$all"
contains "... loops" +0x "$all"
contains "... the libraries" "it needs libwork.so.1, " "$(cat said)"
check "... nothing else" 1 "$(wc -l <said)"
lacks "... which are not listed" 'libwork.so.1!' "$all"
all=$(list -B libwork -P list -- ./bare)
contains "list -B: exported functions" $'\nlibwork.so.1!churn\n' "$all"
contains "... and the others" 'libwork.so.1!sub_' "$all"
contains "... and loops" '+0x' "$(grep '^libwork' <<<"$all")"
check "... no remark" "" "$(cat said)"
mapfile -t names <<<"$all"
args=()
for ((i = 0; i < ${#names[@]} && ${#args[@]} < 120; i++)); do
	args+=(-P "${names[i]}")
done
point=()
run "${args[@]}" -- ./bare library 0.1
check "each of them can be named: exit status" 0 $?
check "... all are found" "" "$(grep -E 'was in no binary|not in ' said)"
check "list:REGEX of a library" 'libwork.so.1!churn' "$(list -B libwork -P 'list:^churn$' -- ./bare)"
check "... by its whole name" 'libwork.so.1!churn' "$(list -B libwork -P 'list:^libwork.*!churn$' -- ./bare)"
list -P 'list:^nowhere$' -- ./app >listed
check "list:REGEX without a match: exit status" 2 $?
contains "... and why" "'^nowhere\$'" "$(cat said)"
list -B nolib -P list -- ./app >listed
contains "list -B without a match: why" "libwork.so.1" "$(cat said)"
printf '#!/usr/bin/env sh\n' >script
chmod +x script
list -P list -- ./script >listed
check "list, a script: exit status" 2 $?
contains "... and what runs" "causal -P list -- sh" "$(cat said)"
if "${cc[@]}" -g -O2 -static-pie -o static "$apps/early.c" 2>/dev/null ||
	"${cc[@]}" -xc -g -O2 -static-pie -o static - 2>/dev/null <<<'int main(void) { return 0; }'; then
	list -P list:main -- ./static >listed
	contains "list, static: its points" main "$(cat listed)"
	contains "... and that they do not count" "statically linked" "$(cat said)"
else
	skip "static-pie cannot be linked here"
fi
cat >odd.cc <<'C'
struct a { int n; };
__attribute__((noinline)) bool operator!=(const a &x, const a &y) { asm(""); return x.n > y.n; }
extern "C" __attribute__((noinline)) void list_all() { asm(""); }
extern "C" __attribute__((noinline)) void ask() { asm(""); }
int main() { list_all(); ask(); return a{1} != a{1}; }
C
if "${cxx[@]}" -O2 -o odd odd.cc 2>/dev/null; then
	mapfile -t names < <(list -P 'list:operator|list_all|ask$' -- ./odd)
	check "list: names that look like something else" 3 "${#names[@]}"
	args=()
	for name in "${names[@]}"; do
		args+=(-P "$name")
	done
	run "${args[@]}" -- ./odd
	check "... can be named: exit status" 0 $?
	check "... all are found" "" "$(grep -E 'was in no binary|not in ' said)"
else
	skip "C++ (no compiler)"
fi

finish
