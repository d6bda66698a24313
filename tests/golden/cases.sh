# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154,SC2034 # $causal is set by run.sh
# Golden cases of the driver: each function's output is compared with tests/golden/<name>.txt.
# $causal: the driver; $work: an empty directory, the current one. What varies from run to run
# (process ids, times, paths of the build) is masked by run.sh. To regenerate: see run.sh.

# ---- what is derived from the settings table
help() { "$causal" --help; }
help_config() { "$causal" --help=config; }
help_man() { "$causal" --help=man | sed '1s/causal [0-9.]*/causal VERSION/'; }
help_bash() { "$causal" --help=bash; }
version() { "$causal" --version | sed 's/[0-9][0-9.]*/VERSION/'; }

# ---- FEATURES F1 rows 3 to 6: variants
variants_speedups() { "$causal" --dry-run -s 0 0,10,20-50 0-40:10 -- x; }
variants_scopes() { "$causal" --dry-run -n 2 -B MAIN -F foo bar -- x; }
variants_order() { "$causal" --dry-run -s 0 10 -F a b -S x y -- x; }
variants_end_to_end() {
	"$causal" --dry-run -e -s 0,10,20-30 -- x
	"$causal" --dry-run -s 0,10,20-30 -e -- x
}
variants_many() { "$causal" --dry-run -n 3 -BE a b -SE c -FE d e -- x; }

# ---- progress points
progress_list() {
	{
		"$causal" -P 'list:^(work|main|toy[.]c)' -- ./toy
		"$causal" -P list:work -- ./bare
		"$causal" -P list:nothing -- ./toy
	} 2>&1 | sed 's/it needs .*: -B/it needs <libraries>: -B/'
}

# ---- row 9: launcher
launcher() {
	"$causal" -v 1 -l 'toy$' -n 2 -o out -- env A=1 ./toy
	"$causal" -l nothing -o out -- env A=1 ./toy
	echo "exit status $?"
}

# ---- row 10: generated configurations
configs() {
	"$causal" -n 1 -v -1 -g cfg -m line -B 'a;b' -s 0 10-20 -o out -- sh -c 'env | grep ^CAUSAL_ | sort'
	tail -n +1 cfg/*
}

# ---- row 11: precedence
precedence() {
	printf 'CAUSAL_MODE = line\nCAUSAL_DELAY = 1\nCAUSAL_DURATION = 1\n' >base.cfg
	export CAUSAL_DELAY=2 CAUSAL_DURATION=2
	"$causal" -n 1 -v -1 -c base.cfg -d 3 -S 'x' -o out -- sh -c 'env | grep ^CAUSAL_ | sort'
	unset CAUSAL_DELAY CAUSAL_DURATION
	CAUSAL_MODE=function CAUSAL_CONFIG_FILE=base.cfg "$causal" -n 1 -v -1 -o out -- \
		sh -c 'env | grep ^CAUSAL_MODE'
	CAUSAL_CONFIG_FILE=base.cfg "$causal" -n 1 -v -1 -o out -S x -- sh -c 'env | grep ^CAUSAL_MODE'
	CAUSAL_MODE=line "$causal" -n 1 -m func -v -1 -o out -- sh -c 'env | grep ^CAUSAL_MODE'
}

# ---- row 12: what is shown of the environment
verbose_silent() { "$causal" -n 1 -v -1 -m func -s 0 10 -o out -- true; }
verbose_0() { "$causal" -n 1 -v 0 -m func -s 0 10 -o out -- true; }
verbose_1() { CAUSAL_COOL_OFF=11 "$causal" -n 1 -v 1 -m func -o out -- true; }
verbose_3() { "$causal" -v 3 -n 2 -F foo -B . -s 0 5-15 -m func -o out -- sh -c 'exit 0'; }
verbose_4() { "$causal" -n 1 -v 4 -o out -- sh -c 'exit 5'; }
verbose_single() { "$causal" -v 0 --single -s 7 -o out -- true; }

# ---- row 13: recommended variables
defaults() {
	"$causal" -n 1 -v -1 -o out -- env | grep '^CAUSAL_' | sort
	echo "--no-defaults"
	"$causal" -n 1 -v -1 --no-defaults -o out -- env | grep '^CAUSAL_' | sort
	echo "already there"
	CAUSAL_USE_PID=true "$causal" -n 1 -v -1 -o out -- env | grep '^CAUSAL_' | sort
	echo "for the sweep only"
	CAUSAL_ITERATIONS=2 CAUSAL_KEEP_GOING=1 CAUSAL_DELAY=1 "$causal" -v -1 -o out -- env |
		grep '^CAUSAL_' | sort
}

# ---- mistakes: one line, exit status 2 (or as a shell)
mistakes() {
	touch plain a:b
	echo >text
	chmod +x text
	mkdir -p full
	printf '#!/no/such/interpreter -x\n' >script
	chmod +x script
	for arguments in '' '-n 3' '-n 3 --' '--' \
		'--speedup 5 -- true' '-z -- true' '-n -- true' '-n 3 stray -- true' \
		'-n x -- true' '-w -1 -- true' '-b magic -- true' '-m lines -- true' \
		'-e perhaps -- true' '--exact=perhaps -- true' \
		'-s 101 -- true' '-s 10- -- true' '-s 0-10:0 -- true' '-s -- true' '--speedups= -- true' \
		'-F ( -- true' '-F a{1000}{1000}{1000} -- true' '-B a;[ -- true' '-l * -- true' '--period 1 -- true' \
		'-c missing.cfg -- true' '-c plain -o plain -- true' '-o plain/x -- true' \
		'-g plain -o out -- true' '-l toy -- true' '-n 1000001 -- true' \
		'--single=9 -s 0 1 -- true' '--single=x -- true' '--help=me' \
		'--runtime=missing.so -- true' '--runtime=plain:x -- true' '--runtime=plain -- true' \
		'--runtime=./toy -- true' \
		'-P -- true' '-P usdt:x -o out -- ./toy' '-P begin=work -o out -- ./toy' \
		'-P * -o out -- ./toy' '-P lib! -o out -- ./toy' '-P wrok -o out -- ./toy' \
		'-P toy.c:99 -o out -- ./toy' '-P toy.c:1 -o out -- ./bare' '-P list:* -- ./toy' \
		'--sinks -- true' '--sinks=nonsense -- true' '--sinks print,x=y --dry-run -- x' \
		'--sinks=print= -- true' '--sinks=print=no/file -o out -- true' \
		'-l toy --dry-run -- x' '--version=3' '-P list -- ./text' '--runtime=a:b -- true' '--seed 0x10 -- true' '--seed=-1 -- true' '-n 0 -- true' '-n -1 -- true' \
		'-m line -o out -- ./bare' '-F nosuchfunction -o out -- ./toy' \
		'trace --' 'sample -n 2 --' '-c . -- true' 'trace -o plain/x -- true' './script' \
		'missing' './missing' './plain' './full' '-n x -- ./missing'; do
		printf 'causal %s\n' "$arguments"
		set -f
		# shellcheck disable=SC2086 # words are meant to be split
		"$causal" $arguments
		printf '\texit status %d\n' $?
		set +f
	done
	printf 'CAUSAL_MOED = line\n' >bad.cfg
	"$causal" -c bad.cfg -- true
	CAUSAL_BACKEND=magic "$causal" -- true
	CAUSAL_BACKENT=perf "$causal" --dry-run -- true
}
