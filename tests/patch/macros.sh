#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# causal.h by several compilers: each point becomes a 5-byte nop with a note, in every copy that
# shellcheck disable=SC2015,SC2016 # conditions that only report; patterns with a $
# the compiler makes of it; labels as they were written; what is no literal does not compile.
set -u

inc=$CA_TOP_SRCDIR/include failed=0 done=0
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99
command -v readelf >/dev/null && command -v objdump >/dev/null || { echo "skipped: no binutils"; exit 77; }

fail() { failed=$((failed + 1)); echo "FAILED: $*"; }

cat >inline.h <<'END'
#include <causal.h>
static inline __attribute__((always_inline)) void copy(void) { CAUSAL_PROGRESS_NAMED("copy"); }
#ifdef __cplusplus
template <int N> struct box { static int f(int a) { CAUSAL_PROGRESS_NAMED("template"); return a + N; } };
inline int comdat(int a) { CAUSAL_PROGRESS_NAMED("comdat"); return a * 3; }
#endif
END
cat >one.c <<'END'
#include "inline.h"
int other(int);
int volatile sink;
int main(int argc, char **argv)
{
	CAUSAL_PROGRESS;
	CAUSAL_PROGRESS_NAMED("a b%c@d$e%%0%=");
	copy(); copy(); copy();
	for (int i = 0; i < 4; i++) { CAUSAL_BEGIN("work"); sink = sink + argc; CAUSAL_END("work"); }
#ifdef __cplusplus
	sink = sink + box<1>::f(argc) + box<2>::f(argc) + comdat(argc);
#endif
	(void)argv;
	return other(argc) == -1;
}
END
cat >two.c <<'END'
#include "inline.h"
int other(int a)
{
	copy();
#ifdef __cplusplus
	a += comdat(a);
#endif
	return a;
}
END

names() { readelf -n "$1" 2>/dev/null | sed -n 's/^ *Name: //p' | sort | uniq -c | sed 's/^ *//'; }

# The addresses that notes give must be 5-byte nops.
check_nops() {
	local at bad=0 n=0
	for at in $(readelf -n "$1" | sed -n 's/^ *Location: 0x0*\([0-9a-f]*\),.*/\1/p'); do
		n=$((n + 1))
		objdump -d --start-address="0x$at" --stop-address=$((0x$at + 5)) "$1" |
			grep -Eq "^ *$at:[[:space:]]*0f 1f 44 00 00" || bad=$((bad + 1))
	done
	[ $n -gt 0 ] && [ $bad -eq 0 ] || fail "$2: $bad of $n notes lead to something else"
}

check() { # NAME FILE LEAST-COPIES
	local list
	list=$(names "$2")
	grep -q '^1 a b%c@d\$e%%0%=$' <<<"$list" || fail "$1: the odd label is missing: $list"
	grep -Eq '^1 one\.cc?:[0-9]+$' <<<"$list" || fail "$1: the point without a name is missing: $list"
	grep -q "^$3 copy\$" <<<"$list" || fail "$1: not $3 copies: $list"
	[ "$(grep -c ' work$' <<<"$list")" = 1 ] || fail "$1: no begin and end: $list"
	readelf -n "$2" | grep -q 'Provider: causal_begin' || fail "$1: no begin"
	readelf -n "$2" | grep -q 'Provider: causal_end' || fail "$1: no end"
	check_nops "$2" "$1"
}

one() { # COMPILER EXTENSION FLAGS...
	local cc=$1 ext=$2 what="$*"
	shift 2
	case $cc in *clang*) set -- "$@" -Wno-unused-command-line-argument ;; esac
	if ! { "$cc" -I"$inc" "$@" -c "one.$ext" -o one.o && "$cc" -I"$inc" "$@" -c "two.$ext" -o two.o &&
		"$cc" "$@" one.o two.o -o prog; } >log 2>&1; then
		fail "$what: $(head -n 3 log)"
		return
	fi
	[ -s log ] && fail "$what: warns: $(head -n 3 log)"
	case $what in *-shared*) ;; *) ./prog || fail "$what: it does not run" ;; esac
	check "$what" prog 4
	if [ "$ext" = cc ]; then
		names prog | grep -q '^2 template$' || fail "$what: not 2 instances: $(names prog)"
		names prog | grep -q ' comdat$' || fail "$what: no comdat: $(names prog)"
	fi
}

# Sets of what must not compile, and of what must leave no trace.
refuse() { # COMPILER EXTENSION
	printf '#include <causal.h>\nint main(void) { const char *s = "x"; CAUSAL_PROGRESS_NAMED(s); return 0; }\n' >"bad.$2"
	if "$1" -I"$inc" -c "bad.$2" -o bad.o >log 2>&1; then
		fail "$1: a label that is no literal compiles"
	else
		# gcc names the rule, clang points to the label
		grep -q LITERAL log || grep -q '^ *^$' log || fail "$1: an unclear message: $(head -n 3 log)"
	fi
	"$1" -I"$inc" -DCAUSAL_DISABLE -Wall -Wextra -Werror -O2 -c "one.$2" -o off.o >log 2>&1 ||
		fail "$1 -DCAUSAL_DISABLE: $(head -n 3 log)"
	[ -z "$(names off.o)" ] || fail "$1 -DCAUSAL_DISABLE leaves notes"
}

for f in one two; do cp $f.c $f.cc; done
sets=("${CC:-cc} c" "${CXX:-c++} cc")
command -v clang >/dev/null && sets+=("clang c") || echo "skipped: no clang"
command -v clang++ >/dev/null && sets+=("clang++ cc")
for set in "${sets[@]}"; do
	compiler=${set% *} ext=${set##* }
	for flags in -O0 -O1 -O2 -O3 "-O2 -fPIC -shared" "-O2 -static" "-O2 -flto" \
		"-O2 -ffunction-sections -Wl,--gc-sections"; do
		# shellcheck disable=SC2086
		one "$compiler" "$ext" $flags -Wall -Wextra
		done=$((done + 1))
	done
	refuse "$compiler" "$ext"
done
echo "$done builds"
exit $((failed > 0))
