#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Install what is missing, build in build/, profile examples/, show what comes out and whether it
# is true. With a command: profile that instead:  scripts/try.sh -n 10 -- ./app
# The exit status is that of causal: without the check or the plot it is a profile all the same.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/deps.sh
. scripts/deps.sh

build=${BUILD:-build}

# without the network there may be all that is needed, except for the plot
ca_install build plot || ca_install build
if [ ! -e "$build/Makefile" ]; then
	echo "== building in $build/"
	autoreconf -fi > autoreconf.log 2>&1 || { cat autoreconf.log; exit 1; }
	rm -f autoreconf.log
	mkdir -p "$build"
	top=$PWD
	(cd "$build" && CONFIG_SHELL=/bin/sh "$top/configure" -q)
fi
echo "== compiling, about a minute on two cores"
make -C "$build" -s -j "$(nproc)" > /dev/null # errors and warnings come on the other output

out=causal-out/try-$(date +%Y%m%d-%H%M%S) example='' status=0
if [ $# -eq 0 ]; then
	# three functions, two speedups: enough experiments for a verdict within a minute
	example=$build/examples/frames
	set -- -n 3 -s 0,20,60 -F '_frame$' -- "$example" 4500
	cat examples/README
fi
echo "== causal $*"
"$build/driver/causal" -o "$out" "$@" || status=$?
if [ -n "$example" ] && [ "$status" -eq 0 ]; then
	echo "== examples/check.sh $out"
	examples/check.sh "$out" "$example" || true # it says what it found
fi
echo "== the results are in $out/"
plot=$out/plot.png
if ! python=$(scripts/python3.sh matplotlib); then
	plot=$out/plot.svg
	echo "== no python3 here has matplotlib (apt-get install python3-matplotlib): SVG in place of PNG"
	python=$(scripts/python3.sh) || python=python3 # not there either: that is said below
fi
if said=$("$python" scripts/plot.py "$out" -o "$plot" 2>&1); then
	echo "== the plot is $plot"
else
	echo "== no plot: ${said##*$'\n'}"
fi
exit "$status"
