#!/usr/bin/env bash
# Install what is missing, build in build/, profile examples/ and show what comes out.
# With a command: profile that instead:  scripts/try.sh -n 10 -- ./app
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/deps.sh
. scripts/deps.sh

build=${BUILD:-build}

ca_install build plot
if [ ! -e "$build/Makefile" ]; then
	echo "== building in $build/"
	autoreconf -fi > autoreconf.log 2>&1 || { cat autoreconf.log; exit 1; }
	rm -f autoreconf.log
	mkdir -p "$build"
	top=$PWD
	(cd "$build" && "$top/configure" -q)
fi
make -C "$build" -s -j "$(nproc)"
python=$(sed -n 's/^PYTHON3 = //p' "$build/Makefile")

out=causal-out/try-$(date +%Y%m%d-%H%M%S)
if [ $# -eq 0 ]; then
	# three functions, two speedups: enough experiments for a verdict within a minute
	set -- -n 5 -s 0,25,50 -F '_line$' -- "$build/examples/pipeline" 10000
	cat examples/README
fi
echo "== causal $*"
"$build/driver/causal" -o "$out" "$@"
echo "== the results are in $out/"
if [ -n "$python" ]; then
	"$python" scripts/plot.py "$out" -o "$out/plot.png"
	echo "== the plot is $out/plot.png"
fi
