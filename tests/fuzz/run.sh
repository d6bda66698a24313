#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh NAME...: fuzzes these harnesses, FUZZ_SECONDS each, in a build of its own with clang's libFuzzer,
# AddressSanitizer and UBSan. Begins with the cases in the tree and with what the tools write for a small
# program. What crashes is left in fuzz-found/NAME/ of the current directory: cure it, and keep the file in
# tests/fuzz/cases/NAME/. FUZZ_OPTIONS are libFuzzer's.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
found=$PWD/fuzz-found
seconds=${FUZZ_SECONDS:-600}
clang=${FUZZ_CC:-clang}
build=$PWD/fuzz-build
flags=(-g -O1 "-fsanitize=address,undefined" -fno-sanitize-recover=undefined)
read -ra options <<<"${FUZZ_OPTIONS:-}"

mkdir -p "$build" "$found"
cd "$build"
[[ -f config.status ]] ||
	"$top/configure" -q CC="${FUZZ_CCACHE:-} $clang" CFLAGS="${flags[*]} -fsanitize=fuzzer-no-link"
make -s -j "$(nproc)" libcausal-causal.la libcausal-binary.la libcausal-core.la causal-index

# seeds: what is good
cat >seed.c <<'END'
#include <stdlib.h>
static inline int twice(int n) { return 2 * n; }
struct node { struct node *next; int value; };
__attribute__((noinline)) int sum(const struct node *list)
{
	int n = 0;
	for (; list; list = list->next)
		n += list->value > 3 ? twice(list->value) : 1;
	return n;
}
int main(int argc, char **argv)
{
	struct node b = { 0, argc }, a = { &b, atoi(argv[0]) };
	switch (argc) {
	case 1: return sum(&a);
	case 2: return 7;
	case 3: return sum(&b) + 1;
	case 4: abort();
	}
	return 0;
}
END
seed() { mkdir -p "seeds/$1" && cp "$2" "seeds/$1/$3"; }
for how in "-g -O2" "-g -O0 -gdwarf-4" "-g -O1 -gz" "-O2 -s" "-g -O2 -m32"; do
	name=${how//[^A-Za-z0-9]/_}
	# shellcheck disable=SC2086 # several options
	"$clang" $how -o seed seed.c 2>/dev/null || continue
	seed elf seed "$name"
	rm -rf cache
	XDG_CACHE_HOME=$PWD/cache ASAN_OPTIONS=detect_leaks=0 ./causal-index summary seed >/dev/null
	for file in cache/causal/*.idx; do seed index "$file" "$name"; done
done

status=0
for name in "$@"; do
	./libtool --silent --tag=CC --mode=link "$clang" "${flags[@]}" -fsanitize=fuzzer -I"$top" -I"$top/include" \
		-std=gnu17 -D_GNU_SOURCE "$top/tests/fuzz/fuzz_$name.c" "$top/tests/fuzz/fuzz.c" -o "fuzz_$name" \
		libcausal-causal.la libcausal-binary.la libcausal-core.la -lm
	mkdir -p "corpus/$name" "seeds/$name" "$found/$name" "tmp"
	cases=$top/tests/fuzz/cases/$name
	echo "== $name, $seconds s"
	# what core/regex.c tries in a child may get no memory there
	nice env TMPDIR="$PWD/tmp" ASAN_OPTIONS=allocator_may_return_null=1 "./fuzz_$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
		-print_final_stats=1 -artifact_prefix="$found/$name/" "${options[@]}" \
		"corpus/$name" "seeds/$name" "$cases" >"$name.log" 2>&1 || status=1
	grep -E 'ERROR|SUMMARY|runtime error|number_of_executed|Test unit written' "$name.log" || true
done
exit $status
