#!/bin/bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what stands in single quotes is for inner interpreters
# Programs as Debian installs them, with options as a user would give them: the output is the
# same, the libraries' code is found, the points are counted, a server that is stopped leaves its
# results. tests/real/table.py is the long version.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

needs() { # PROGRAM
	command -v "$1" >/dev/null && return
	skip "there is no $1"
	return 1
}
# real NAME OPTIONS -- COMMAND...: output and status are those of the command alone
real() {
	local name=$1 options=() expected
	shift
	while [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	shift
	"$@" >alone 2>/dev/null
	expected=$?
	profile "${options[@]}" -- "$@"
	check "$name: exit status" "$expected" "$status"
	explain "$expected"
	check "$name: output" "$(cksum <alone)" "$(cksum <out)"
}
# of NAME LIBRARY: code of that library was selected
of() { at_least "$1: code of $2 is found" 1 "$(grep -c "\"region\":{[^}]*\"binary\":\"[^\"]*$2[^\"]*\"" results/run-0001.jsonl)"; }

for library in /usr/lib/x86_64-linux-gnu/libc.so.6 /lib64/libc.so.6 "$(command -v bash)"; do
	[[ -r $library ]] && for _ in 1 2 3 4 5 6; do cat "$library"; done
done | head -c 12000000 >input

if needs pigz; then
	real pigz -B 'MAIN;libz' -P 'libz.so!deflate' -s 0,50 -- pigz -c -p2 input
	of pigz libz
	at_least "pigz: calls of deflate in experiments" 1 "$(total visits)"
	at_least "pigz: experiments" 1 "$(total started)"
fi
if needs xz; then
	real xz -B liblzma -e -s 50 -- xz -c -T2 -1 --block-size=1MiB input
	of xz liblzma
	at_least "xz: an experiment" 1 "$(total started)"
	# without debug files the library's own functions have no names
	if grep -q '^sub_' err; then
		check "xz: names by address are explained" 1 "$(grep -c '^sub_...: code without a symbol' err)"
	fi
fi
# It waits in S for room in gzip's pipe, maybe since before the experiment: gzip must not pay for that.
if needs tar && needs gzip; then
	tar cz input input input >alone
	begun=$SECONDS
	# it has a tick of its own each second or so: twelve runs, to see it in one
	profile -B tar -e -s 100 -n 12 -- tar cz input input input
	at_least "tar: experiments" 1 "$(cat results/run-*.jsonl | grep -c '^{"type":"experiment"')"
	check "tar: twelve short runs are short" 1 $((SECONDS - begun < 120))
	check "tar: output" "$(for _ in {1..12}; do cat alone; done | cksum)" "$(cksum <out)"
	profile -n 3 -s 0,50 -- tar cz input input input
	check "tar: points are looked for where they are" 0 "$(grep -c ': not in ' err)"
fi
python=/usr/bin/python3
if needs "$python"; then
	real python3 -B 'MAIN;libz;libcrypto' -P '^(crc32|crc32_z|compress2)$' -P 'libz.so!deflate' -s 0,50 -- \
		"$python" -c '
import queue, sys, threading, zlib
data = open("input", "rb").read()
full, sums = queue.Queue(4), []
def pack():
    for i in range(0, len(data), 65536):
        full.put(zlib.compress(data[i:i + 65536], 1))
    full.put(None)
def check():
    while (packed := full.get()) is not None:
        sums.append(zlib.crc32(packed))
threads = [threading.Thread(target=f) for f in (pack, check)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(sums), sum(sums))
sys.exit(7)'
	at_least "python3: visits" 1 "$(total visits)"

	# a server that gives its rights up: libraries are known all the same
	if [[ $(id -u) == 0 ]]; then
		real rights -e -s 50 -- "$python" -c '
import os, time, zlib
os.setuid(65534)
data, end = os.urandom(4096) * 40, time.monotonic() + 0.6
while time.monotonic() < end:
    zlib.compress(data, 6)
print(os.getuid())'
		at_least "rights: stacks walked to their end for each that was not" 2 \
			$(($(total samples) / ($(total unwind) + 1)))
	else
		skip "only root can give its rights up"
	fi

	# a server: what was measured until it is stopped is kept, and the driver says how it ended
	cat >server.py <<'PY'
import socket, zlib
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    link, _ = server.accept()
    with link:
        while data := link.recv(65536):
            link.sendall(b"%d\n" % len(zlib.compress(data * 64, 6)))
PY
	timeout -k 5 60 "$causal" -o server -P 'libz.so!deflate' -B libz -s 0,50 -- "$python" server.py \
		>port 2>err &
	driver=$!
	for _ in {1..200}; do
		[[ -s port ]] && break
		sleep 0.05
	done
	"$python" - "$(cat port)" >answers <<'PY'
import socket, sys, time
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
end, n = time.monotonic() + 30, 0
# until there is a result, however busy the machine is
while time.monotonic() < end and (n % 50 or '"experiment"' not in open("server/run-0001.jsonl").read()):
    link.sendall(b"a request, always the same ")
    if not link.recv(100):
        sys.exit(1)
    n += 1
print("served" if n > 20 else n)
PY
	check "a server under causal answers" served "$(cat answers)"
	# timeout hands the signal on to causal, and that to the server
	kill -TERM "$driver"
	wait "$driver"
	at_least "a server that is stopped: experiments" 1 "$(grep -c '"type":"experiment"' server/run-0001.jsonl)"
	check "... its last record" end "$(tail -n 1 server/run-0001.jsonl | sed 's/.*"type":"\([a-z]*\)".*/\1/')"
	check "... its profile" 1 "$(grep -c '"format": *"causal-profile"' server/profile.json)"
fi
finish
