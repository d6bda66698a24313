#!/bin/bash
# SPDX-License-Identifier: MIT
# Libraries that come, go and come back; that start threads before us; other preloaded ones;
# programs into which nothing can be preloaded.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

# library NAME: builds NAME.so of tests/apps/NAME.c
library() {
	"${cc[@]}" -std=gnu17 -D_GNU_SOURCE -g -O2 -fPIC -fno-builtin -shared -pthread -I"$source_dir" -I"$source_dir/include" \
		"$source_dir/tests/apps/$1.c" -o "$1.so" || bad "cannot build $1.so"
}
library plugin
library early
library interposer

find_backends
for backend in "${backends[@]}"; do
	for name in open reopen churn; do
		profile -b "$backend" -B 'plugin\.so' -B MAIN -s 0,50 -- "$apps/libraries" "$name" "$work/plugin.so"
		check "$name with $backend: exit status" 0 "$status"
		explain 0
	done
	was_selected=$(grep -c '"binary":"[^"]*plugin.so"' results/run-0001.jsonl)
	profile -b "$backend" -B 'plugin\.so' -B MAIN -P 'plugin.so!plugin_run' -P 'plugin.so!piece_of_work' -s 0,50 -- \
		"$apps/libraries" race "$work/plugin.so"
	check "opened and closed in a race, with points in it, $backend: exit status" 0 "$status"
	explain 0
	at_least "its code is selected, $backend" 1 "$was_selected"
	# without experiments all visits are in the sum
	profile -w 1000 -b "$backend" -B 'plugin\.so' -- "$apps/libraries" reopen "$work/plugin.so"
	# of the pieces of work; less than a quarter if only the first of four openings counted
	at_least "a library opened four times, $backend: visits in percent" 40 \
		$(($(total visits) * 100 / $(sed -n 's/^pieces //p' out)))

	profile -b "$backend" -s 0,50 -- env LD_PRELOAD="$work/early.so" "$apps/processes" work
	check "threads before our constructor, $backend: exit status" 0 "$status"
	explain 0
	check "threads before our constructor, $backend: output" "work: good" "$(cat out)"
	at_least "threads before our constructor, $backend: visits" 100 "$(total visits)"

	for name in churn cancel; do
		LD_PRELOAD=$work/interposer.so profile -b "$backend" -B MAIN -s 0,50 -- "$apps/threads" "$name"
		check "$name with another preloaded library, $backend: exit status" 0 "$status"
		explain 0
	done
done

# what cannot take part is told so, runs as if alone, and the profile does not blame its user
cp "$apps/exits" app-rights
if ! chown 12345:12345 app-rights 2>/dev/null || ! chmod 6755 app-rights; then
	skip "set-user-ID: cannot make such a program"
elif findmnt -no OPTIONS -T . | grep -qw nosuid; then
	skip "set-user-ID: the folder for temporary files is on a file system that ignores it"
else
	profile -- ./app-rights return
	check "set-user-ID: exit status" 3 "$status"
	check "set-user-ID: says why" 1 "$(grep -c 'is set-user-ID.*: the runtime cannot be preloaded' err)"
	check "set-user-ID: the profile says it, too" 1 "$(grep -c '^No result: the runtime could not be preloaded into' err)"
fi
# where the file system ignores these rights, it is a program like others
if [[ -u app-rights ]] && unshare -m true 2>/dev/null; then
	rm -rf results
	mkdir ignored
	unshare -m bash -c 'mount -t tmpfs -o nosuid none ignored && cp -p app-rights ignored && exec "$@"' \
		bash "$causal" -o results -s 0,50 -- ignored/app-rights return >out 2>err
	check "set-user-ID, ignored: exit status" 3 $?
	lacks "set-user-ID, ignored: no warning" set-user-ID "$(cat err)"
	at_least "set-user-ID, ignored: samples" 3 "$(total samples)"
else
	skip "set-user-ID, ignored: no mounts here"
fi
# by their linker's note and section, as there may be no Go here
cat >go.c <<'C'
__attribute__((section(".go.buildinfo"), used)) static const char info[] = "\xff Go buildinf:";
__attribute__((section(".note.go.buildid"), used, aligned(4))) static const struct {
	unsigned name, desc, type;
	char text[8];
} note = { 4, 4, 4, "Go\0\0abc" };
int main(void) { return 6; }
C
if "${cc[@]}" -o app-go go.c 2>/dev/null && readelf -n app-go 2>/dev/null | grep -q 'Go *0x'; then
	profile -- ./app-go
	check "Go: exit status" 6 "$status"
	check "Go: says why" 1 "$(grep -c 'is a Go program.*: the runtime cannot be preloaded' err)"
	check "Go: the profile says it, too" 1 "$(grep -c '^No result: the runtime could not be preloaded into' err)"
	check "Go: in one line" 1 "$(grep -c 'Go program' err)"
	profile -- sh -c './app-go; exit 7'
	check "Go behind a shell: exit status" 7 "$status"
	check "Go behind a shell: says so" 1 "$(grep -c 'is a Go program' err)"
else
	skip "cannot make notes like Go's"
fi

if command -v musl-gcc >/dev/null && musl-gcc -O2 -x c -o app-musl - <<<'int main(void) { return 5; }' 2>/dev/null; then
	profile -- ./app-musl
	check "musl: exit status" 5 "$status"
	check "musl: says why" 1 "$(grep -c 'uses the C library musl.*: the runtime cannot be preloaded' err)"
	check "musl: and nothing else, from its loader" 0 "$(grep -c relocating err)"
	profile -- sh -c './app-musl; exit 6'
	check "musl behind a shell: exit status" 6 "$status"
	check "musl behind a shell: its loader has nothing to say" 0 "$(grep -c 'Error' err)"
else
	skip "no musl-gcc"
fi

for kind in -static -static-pie; do
	if "${cc[@]}" -std=gnu17 -D_GNU_SOURCE -g -O2 "$kind" -fPIE -I"$source_dir" -I"$source_dir/include" -o "app$kind" \
		"$source_dir/tests/apps/exits.c" 2>/dev/null; then
		profile -n 2 --keep-going -- "./app$kind" return
		check "$kind: exit status" 3 "$status"
		check "$kind: says why, once" 1 "$(grep -c 'is statically linked: the runtime cannot be preloaded' err)"
		check "$kind: the profile says it, too" 1 "$(grep -c '^No result: the runtime could not be preloaded into' err)"
	else
		skip "cannot link with $kind"
	fi
done
finish
