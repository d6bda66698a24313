#!/bin/bash
# SPDX-License-Identifier: MIT
# scripts/try.sh and examples/check.sh where the first python3 is not Debian's and has no module:
# a sweep ends as causal does, and a plot that cannot be drawn is one line. With stand-ins for
# causal, the build and the program, so that nothing is built, installed or measured here.
# shellcheck source=tests/integration/check.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/check.bash" || exit 99
frames=$build/examples/frames
unset DISPLAY WAYLAND_DISPLAY PYTHON3 BUILD

program() { # FILE, and its text from standard input
	mkdir -p "$(dirname "$1")" && cat >"$1" && chmod +x "$1"
}

if [[ -z ${CA_PYTHON3-$(command -v python3)} ]]; then
	echo "skipped: there is no python3"
	exit 77
fi
real=$(command -v "${CA_PYTHON3:-python3}")
program "$work/bin/python3" <<<"#!/bin/sh
exec '$real' -I -S \"\$@\""
# everything is installed, and nothing may be
program "$work/bin/dpkg-query" <<<$'#!/bin/sh\necho installed'
program "$work/bin/apt-get" <<<$'#!/bin/sh\necho "apt-get was called"; exit 1'
cp -r "$source_dir/scripts" "$source_dir/examples" . || exit 1
chmod -R u+w scripts examples
mkdir build
printf 'all:\n' >build/Makefile
# As frames would: a brings 20 % and 40 %, b 10 %; now and then it is disturbed.
program build/examples/frames <<'SH'
#!/bin/sh
read -r calls <calls
echo $((calls + 1)) >calls
ms=10.0
case $2 in a=75) ms=8.0 ;; a=50) ms=6.0 ;; b=50) ms=9.0 ;; esac
[ $((calls % 7)) -ne 5 ] || ms=14.0
echo "$1 frames, $ms ms each"
SH
profile() { # EFFECT of a at 25 %, ORDER of the names
	local name effect
	for name in $2; do
		effect='{"speedup":25,"effect":'$1',"low":'$1'.0,"high":'$1'.5,"experiments":9},
			{"speedup":50,"effect":40.5,"low":39,"high":42,"experiments":9}'
		[[ $name == b ]] && effect='{"speedup":50,"effect":9,"low":5,"high":12,"experiments":9}'
		printf '%s{"name":"%s","kind":"function","file":"f.c","function":"%s","progress":[{"point":"p",
			"kind":"throughput","verdict":"worth","curve":[%s]}]}' "${comma-}" "$name" "$name" "$effect"
		local comma=,
	done
}
program build/driver/causal <<'SH'
#!/bin/sh
mkdir -p "$2" && cp profile.json "$2" # -o DIR
exit "${STATUS:-0}"
SH
sweep() { # EFFECT ORDER
	printf '{"format":"causal-profile","version":1,"command":"build/examples/frames 4000","regions":[%s]}\n' \
		"$(profile "$@")" >profile.json
}
# attempt ARGUMENT...: try.sh with that python3 first; what it says in $said, its end in $status
attempt() {
	rm -rf causal-out
	echo 0 >calls
	said=$(PATH=$work/bin:$PATH TURNS=3 scripts/try.sh "$@" 2>&1)
	status=$?
}

# ---- which interpreter
for module in matplotlib jsonschema; do
	found=$(PATH=$work/bin:$PATH scripts/python3.sh $module)
	check "$module: not that python3" no "$([[ $found == "$work"/* ]] && echo yes || echo no)"
	[[ -z $found ]] || check "$module: one that has it" 0 "$("$found" -c "import $module"; echo $?)"
	/usr/bin/python3 -c "import $module" 2>/dev/null && check "$module: Debian's" /usr/bin/python3 "$found"
	fit=CA_PYTHON_${module^^}
	[[ -z ${!fit-} ]] || check "$module: configure's has it" 0 "$("${!fit}" -c "import $module"; echo $?)"
done
check "any will do" "$work/bin/python3" "$(PATH=$work/bin:$PATH scripts/python3.sh)"
check "none has it" 1 "$(PYTHON3=$work/bin/python3 scripts/python3.sh matplotlib; echo $?)"
check "only the named one counts" 1 "$(PYTHON3=/bin/false scripts/python3.sh; echo $?)"
echo '# needs jsonschema' >needs.py
check "a test gets what it needs" needs.py \
	"$(CA_PYTHON3=false CA_PYTHON_JSONSCHEMA=echo bash "$source_dir/tests/run-python.sh" needs.py)"
check "... or any" needs.py \
	"$(CA_PYTHON3=echo CA_PYTHON_JSONSCHEMA='' bash "$source_dir/tests/run-python.sh" needs.py)"

# ---- a whole run
sweep 20 "a b"
attempt
check "try.sh: exit status" 0 $status
contains "... README" "draw_frame" "$said"
contains "... the table" "a       25 %    20.0 % (20.0 to 20.5)      20.0 %" "$said"
contains "... b, too" "b       50 %     9.0 % (5.0 to 12.0)       10.0 %" "$said"
contains "... the verdict" "True: all 3 predictions are at most 4 points off, and a really brings most." "$said"
kind=png
[[ -n $(PATH=$work/bin:$PATH scripts/python3.sh matplotlib) ]] || kind=svg
contains "... the plot" "== the plot is causal-out/" "$said"
check "... is there" 1 "$(find causal-out -name "plot.$kind" | wc -l)"
check "... no traceback" 0 "$(grep -c Traceback <<<"$said")"

# ---- without matplotlib anywhere, without Python, with nothing to draw
PYTHON3=$work/bin/python3 STATUS=7 attempt -- ./app
check "no matplotlib: the status is causal's" 7 $status
check "... one line says so" 1 "$(grep -c 'no python3 here has matplotlib (apt-get install' <<<"$said")"
check "... SVG needs none" 1 "$(find causal-out -name plot.svg | wc -l)"
PYTHON3=/bin/false attempt
check "no Python that runs: exit status" 0 $status
contains "... the check says why" "there is no python3" "$said"
check "... no traceback" 0 "$(grep -c Traceback <<<"$said")"
echo '{"format":"causal-profile","version":1,"command":"x","regions":[],"cause":"no luck","remedy":"wait"}' >profile.json
attempt
check "nothing to draw: exit status" 0 $status
check "... one line says why" 1 "$(grep -c '== no plot: .*no luck; to do: wait' <<<"$said")"
contains "... nor to check" "predicts nothing" "$said"

# ---- plot.py by hand
sweep 20 "a b"
message=$("$work/bin/python3" scripts/plot.py . -o plot.png 2>&1)
check "plot.py without matplotlib: exit status" 2 $?
check "... one line" 1 "$(wc -l <<<"$message")"
contains "... what to do" "apt-get install python3-matplotlib" "$message"

# ---- the check by itself
told() { # NAME STATUS PART DIR...
	local name=$1 status=$2 part=$3 said
	shift 3
	echo 0 >calls
	said=$(PATH=$work/bin:$PATH TURNS=3 examples/check.sh "$@" 2>&1)
	check "check.sh, $name: exit status" "$status" $?
	contains "check.sh, $name: what it says" "$part" "$said"
}
sweep 27 "a b"
told "a wrong number" 1 "off by 7.0" .
sweep 20 "b a"
told "a wrong order" 1 "b comes first, but a brings more" .
sweep 20 "a b"
sed -i 's/"effect":40.5,"low":39/"effect":48.5,"low":9/; s/"high":42/"high":60/' profile.json
told "a wide interval" 3 "Cannot tell: 1 of 3 intervals" .
sed -i 's/% 7)) -ne 5/% 4)) -lt 2/' build/examples/frames
told "a busy machine" 3 "varies by 40 %" .
told "another program" 2 "does not say 'N ms each'" . /bin/true
told "a program that is not there" 2 "cannot run ./absent" . ./absent
told "no sweep" 2 "cannot read build/profile.json" build
told "no arguments" 2 "usage:"
echo '{"command":1}' >profile.json
told "a damaged profile" 2 "is damaged" .

# ---- the example: what it computes tells how much it did
result() { "$frames" 2 "$@" | sed 's/,.*(/ (/'; }
whole=$(result)
contains "frames: units" "2 frames (" "$whole"
for function in simulate_frame draw_frame write_frame; do
	check "frames: all of $function" "$whole" "$(result "$function=100")"
	check "frames: half of $function is less" no "$([[ $(result "$function=50") == "$whole" ]] && echo yes || echo no)"
done
contains "frames as check.sh wants it" " ms each" "$("$frames" 1)"
for word in paint=50 draw_frame= draw_frame=-5 draw_frame=9x 0 -3 3x; do
	said=$("$frames" 2 $word 2>&1)
	check "frames $word: exit status" 2 $?
	contains "frames $word: usage" "usage: frames" "$said"
done

finish
