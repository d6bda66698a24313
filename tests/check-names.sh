#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The rules of doc/HACKING.md on names and layers, held against what was compiled and written:
# - a function that other files can call is named after its module: ca_<module>_<verb>;
# - one that no other file calls is static, and one that nobody calls is gone;
# - no two shared types have one name;
# - includes point from right to left in core <- binary <- sampler <- causal <- driver;
# - modules do not include each other in a circle.
# A module is a file and its header, and may be named by the first words of the file's name: what is
# in patch_mem.c is ca_patch_mem_<verb> or ca_patch_<verb>.
# The functions that libcausal-rt.so exports have their names from others;
# tests/integration/rt_exports.sh compares them with the tables.
set -euo pipefail
export LC_ALL=C

cd "${CA_TOP_SRCDIR:-.}"
build=${CA_TOP_BUILDDIR:-.}
rooms=(core binary sampler causal driver)
read -ra nm <<< "${NM:-nm}" # may bring an option along
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
complain() {
	echo "$*"
	failed=1
}

# Without a caller in another object for a reason: NAME or PREFIX*, and why.
uncalled=$(sed 's/[[:space:]]*#.*//' <<'LIST'
main
ca_trampoline_*      # their addresses are written into patched code
ca_wrap_code_*       # libcausal.so finds them by name
ca_selftest_region   # the selftest's workload, which is found by its name
ca_dict_*            # keys of others are registered at run time (doc/HACKING.md)
ca_wrap_old_pthread_kill # programs call it by its name in an older libc
LIST
)
# Circles that are meant, each with its modules in order, and why.
circles=$(sed 's/[[:space:]]*#.*//' <<'LIST'
core/module core/point core/session core/slot core/slot_set # the session is made of them; their functions take all of it
causal/runtime/probe causal/runtime/thread causal/runtime/wait # who comes back from a wait places sites first; a thread pays before it ends; whoever meets others is made known as a thread
causal/runtime/real causal/runtime/signals causal/runtime/wrap # real.c looks up what wrap.h lists
LIST
)
is_excepted() {
	local pattern

	while read -r pattern; do
		# shellcheck disable=SC2053 # a pattern is meant
		[[ $1 == $pattern ]] && return
	done <<< "$uncalled"
	return 1
}

# ---- what was compiled: "stem kind name", from the archives, which hold no stale objects
shopt -s nullglob
archives=("$build"/.libs/lib{causal-*,runtime}.a)
programs=("$build"/driver/*.o "$build"/binary/index/*.o "$build"/{binary/plan,causal/library}/.libs/libcausal_code_la-*.o)
shopt -u nullglob
if ((${#archives[@]} == 0)); then
	echo "no archive found below $build"
	exit 99
fi
"${nm[@]}" -A -g "${archives[@]}" "${programs[@]}" |
	sed -E 's/^.*[:/]([^:/]*)\.o:[0-9a-fA-F ]*([A-Za-z]) ([^ @]*).*/\1 \2 \3/; s/^lib[a-z]*_(binary_|causal_|code_|core_|driver_|rt_)*la-//; s/^(driver_causal|causal_index)-//' |
	grep -v '^[^ ]*\.pb-c ' | sort -u >"$work/symbols" # written by protobuf-c's compiler
awk '$2 == "T" { print $3, $1 }' "$work/symbols" | sort -u >"$work/defined"
awk '$2 == "U" { print $3, $1 }' "$work/symbols" | sort -u >"$work/called"
"${nm[@]}" -D --defined-only "$build/.libs/libcausal-rt.so" | awk '{ sub(/@.*/, "", $3); print $3 }' |
	sort -u >"$work/exported"
if ! grep -qx 'ca_ring_push ring' "$work/defined"; then
	echo "${nm[*]} does not see ca_ring_push: this test would prove nothing"
	exit 99
fi

# ---- names: after the file that defines it, or a header that declares it
find "${rooms[@]}" include -name '*.[ch]' | sort >"$work/files"
grep '\.h$' "$work/files" | xargs grep -oHE '\bca_[a-z0-9_]+\(' |
	sed -E 's|^.*/([^/]*)\.h:(.*)\($|\2 \1|' | sort -u >"$work/declared"
# ... and functions that are defined in a header
grep '\.h$' "$work/files" | xargs grep -HE '^(CA_SIGSAFE )?static inline ' |
	sed -nE 's|^.*/([^/]*)\.h:.*\bstatic inline .*\b([a-z0-9_]+)\(.*|\2 \1|p' | sort -u >"$work/inline"
# A name is to be that of one of its files, or begin with it, or with the first words of it.
awk -v exported="$work/exported" '
function is_after(name, stem) {
	if (name == "ca_" stem)
		return 1
	while (index(name, "ca_" stem "_") != 1)
		if (!sub(/_[^_]*$/, "", stem))
			return 0
	return 1
}
BEGIN {
	while ((getline name < exported) > 0)
		is_exported[name]
}
FILENAME !~ /declared$/ { places[$1] = places[$1] $2 " " }
{ right[$1] = right[$1] || is_after($1, $2) }
END {
	for (name in places)
		# compilers call the functions of runtime/mem.c
		if (!right[name] && !(name in is_exported) && name !~ /^(main|causal_.*|mem(cpy|move|set|cmp))$/)
			print name " is not named after its file: " places[name]
}' "$work/defined" "$work/inline" "$work/declared" | sort >"$work/misnamed"
while read -r line; do
	complain "$line"
done <"$work/misnamed"

# ---- calls
# Those that no other object refers to. Tests may call what its own file calls as well.
awk 'FILENAME ~ /exported$/ { is_exported[$1]; next }
FILENAME ~ /called$/ { callers[$1] = callers[$1] " " $2; next }
$1 ~ /^causal_/ || $1 in is_exported { next }
{
	n = split(callers[$1], caller, " ")
	for (other = i = 0; ++i <= n;)
		other = other || caller[i] != $2
	if (!other)
		print
}' "$work/exported" "$work/called" "$work/defined" >"$work/alone"
cat tests/unit/*.[ch] tests/*/*.c >"$work/tests"
while read -r name stem; do
	is_excepted "$name" && continue
	own=$(grep "/$stem\.[cS]$" "$work/files" | xargs grep -hw "$name" | grep -cvE '^(/| ?\*)' || true)
	if ! grep -qw "$name" "$work/tests"; then
		complain "$name ($stem) is called by no other file: make it static, or remove it"
	elif ((own < 2)); then
		complain "$name ($stem) is called by tests only: remove it"
	fi
done <"$work/alone"

# ---- types: those with our prefix, and all in headers
{
	xargs grep -HE '^(static const |typedef )?(struct|enum|union) [a-z0-9_]+ \{' <"$work/files" |
		sed -E 's/^([^:]*):.*(struct|enum|union) ([a-z0-9_]+) \{.*/\3 \1/'
} | sort -u >"$work/types"
while read -r type; do
	places=$(grep "^$type " "$work/types" | cut -d' ' -f2 | tr '\n' ' ')
	[[ $type == ca_* || $places == *.h* ]] && complain "there are several types $type: $places"
done < <(cut -d' ' -f1 "$work/types" | uniq -d)

# ---- layers and circles
xargs grep -HE '^#include "' <"$work/files" | sed -E 's/^([^:]*):#include "([^"]*)".*/\1 \2/' |
	grep -vE '\.def$' >"$work/includes"
awk -v rooms="${rooms[*]}" '
function rank(file) {
	sub(/\/.*/, "", file)
	return file in at ? at[file] : -1 # include/causal.h
}
BEGIN {
	for (n = split(rooms, room, " "); n; n--)
		at[room[n]] = n
}
rank($2) > rank($1) { print $1 " includes " $2 ": upwards" }' "$work/includes" >"$work/upwards"
while read -r line; do
	complain "$line"
done <"$work/upwards"
# A header and its source are one here, and so is what a module's files share in private.
module() { sed -E 's/\.[ch]$//; s/_(internal|parts|state)$//'; }
paste -d' ' <(cut -d' ' -f1 "$work/includes" | module) <(cut -d' ' -f2 "$work/includes" | module) |
	sort -u >"$work/edges"
awk '{ edge[$1] = edge[$1] " " $2 }
function reach(from, at,    next_, n, i) {
	n = split(edge[at], next_, " ")
	for (i = 1; i <= n; i++)
		if (!((from, next_[i]) in reached)) {
			reached[from, next_[i]]
			reach(from, next_[i])
		}
}
END {
	for (module in edge)
		reach(module, module)
	for (module in edge)
		for (other in edge)
			if (module != other && (module, other) in reached && (other, module) in reached)
				circle[module] = circle[module] " " other
	for (module in circle)
		print module circle[module]
}' "$work/edges" | while read -ra circle; do
	printf '%s\n' "${circle[@]}" | sort | paste -sd ' '
done | sort -u >"$work/circles"
while read -r circle; do
	grep -qxF -- "$circle" <<< "$circles" || complain "modules include each other in a circle: $circle"
done <"$work/circles"

echo "$(wc -l <"$work/defined") functions, $(wc -l <"$work/files") files looked at"
exit "$failed"
