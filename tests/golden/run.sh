#!/bin/bash
# SPDX-License-Identifier: MIT
# Compares what the driver says with tests/golden/*.txt.
#   tests/golden/run.sh              compare all (as "make check" does)
#   tests/golden/run.sh NAME...      compare some
#   tests/golden/run.sh --regenerate write the files anew; then review the difference
# Run by make, which says where the trees are; by hand: in the build directory.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${CA_TOP_BUILDDIR:-$PWD}
causal=$build/driver/causal
# The preloaded object cannot come before a sanitizer's.
if [[ -n ${CA_SANITIZER-} ]]; then
	echo "SKIP: the runtime does not go with $CA_SANITIZER"
	echo "0 passed, 0 failed, 1 skipped"
	exit 77
fi
regenerate=0
if [[ ${1-} == --regenerate ]]; then
	regenerate=1
	shift
fi
export LC_ALL=C TZ=UTC
# The caller's settings must not show.
for name in $(compgen -e | grep -E '^(CAUSAL|COZ)_') LD_PRELOAD MONOCHROME; do
	unset "$name"
done
top=$(mktemp -d) || exit 1
trap 'rm -rf "$top"' EXIT

# shellcheck source=tests/golden/cases.sh
source "$here/cases.sh"
names=("$@")
if ((!$#)); then
	mapfile -t names < <(sed -n 's/^\([a-z_0-9]*\)() .*/\1/p' "$here/cases.sh")
fi

# A program that ends at once, with a function and debug information.
printf 'int work(int n) { return n + 1; }\nint main(void) { return work(-1); }\n' >"$top/toy.c"
${CC:-cc} -g -o "$top/toy" "$top/toy.c" && ${CC:-cc} -g0 -o "$top/bare" "$top/toy.c" || exit 1

mask() {
	sed -e "s|$causal|<causal>|g" -e "s|$build/.libs|<lib>|g" -e "s|$top|<top>|g" \
		-e 's|\[[0-9]* -> [0-9]*\]|[PARENT -> CHILD]|' \
		-e 's|CAUSAL_SESSION=.*|CAUSAL_SESSION=<session>|' \
		-e 's|out/[^ ]*-[0-9]\{8\}-[0-9]\{6\}|out/<app>-<time>|' \
		-e 's|(\([a-z]*\), [0-9.]* s)|(\1, <s>)|' \
		-e 's|: [0-9]* s, [0-9]* experiments\{0,1\}, [0-9]* s to go|: <s>, <n> experiments, <s> to go|' \
		-e 's|: [0-9]* s, [0-9]* s to go|: <s>, <s> to go|' |
		# Where perf is not allowed. The table belongs to the results, which have tests of
		# their own.
		sed -e '/^causal: timers give the samples/d' -e '/^[0-9]* runs\{0,1\}, [0-9]* experiment/,/^Funnel: /d'
}

failed=0 passed=0
for name in "${names[@]}"; do
	mkdir -p "$top/$name" && cp "$top/toy" "$top/bare" "$top/$name/"
	# Through a pipe: --single's conductor shows its table after the program has ended.
	(cd "$top/$name" && "$name" </dev/null 2>&1) | cat >"$top/$name.raw"
	case $name in help*) cat "$top/$name.raw" ;; *) mask <"$top/$name.raw" ;; esac >"$top/$name.txt"
	if ((regenerate)); then
		cp "$top/$name.txt" "$here/$name.txt"
	elif ! diff -u "$here/$name.txt" "$top/$name.txt"; then
		echo "FAIL: $name (regenerate with tests/golden/run.sh --regenerate)"
		failed=$((failed + 1))
		continue
	fi
	passed=$((passed + 1))
done
echo "$passed passed, $failed failed, 0 skipped"
((failed == 0))
