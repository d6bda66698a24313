#!/bin/bash
# SPDX-License-Identifier: MIT
# Other people's tests, alone and under "causal -e -s 50" with perf and with timers: each test has the same
# result. What differs is run again, both ways, as a busy machine changes results, too; what never comes
# out as alone is a failure. Takes half an hour; "make suites" runs it. SUITES="python perl" selects;
# PERL_SOURCE is a folder with perl's own source, otherwise apt-get gets it.
# shellcheck disable=SC2317 # suites are called by their names
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

# Each suite_NAME COMMAND... runs its programs behind COMMAND and prints lines "TEST<tab>RESULT".
suite_python() {
	local module

	for module in test_threading test_signal test_subprocess test_fork1 test_queue test_selectors test_faulthandler; do
		timeout 900 "$@" "$tested_python" -m test --junit-xml "$work/junit.xml" "$module" >&2
		"$tested_python" - "$work/junit.xml" <<'PYTHON'
import sys, xml.etree.ElementTree as tree
for case in tree.parse(sys.argv[1]).iter("testcase"):
    said = [part.tag for part in case if part.tag in ("failure", "error", "skipped")]
    print(case.get("name"), said[0] if said else "ok", sep="\t")
PYTHON
		rm -f "$work/junit.xml"
	done
}
can_python() {
	for tested_python in "$python" python3 /usr/bin/python3; do
		"$tested_python" -c 'import test.test_threading, test.libregrtest' 2>/dev/null && return
	done
	why="no python3 with its tests (libpython3-testsuite)"
	return 1
}

suite_perl() {
	local module

	for module in threads threads-shared Thread-Queue Thread-Semaphore; do
		(cd "$perl_source/dist/$module" && timeout 900 "$@" prove -v t 2>"$work/prove.err") | awk -v module="$module" '
			/^t\/.*\.t \.\./ { file = $1 }
			/^ok [0-9]/ { print module "/" file " " $2 "\tok" }
			/^not ok [0-9]/ { print module "/" file " " $3 "\t" (/# TODO/ ? "todo" : "not ok") }
			/^Result:/ { print module "\t" $2 }'
	done
}
can_perl() {
	local lists=$work/lists

	why="no source of perl: set PERL_SOURCE, or have apt-get and the network"
	perl_source=${PERL_SOURCE:-}
	command -v prove >/dev/null || return
	if [[ -z $perl_source ]]; then
		mkdir -p "$lists/partial" "$work/perl" && cd "$work/perl" || return
		echo 'deb-src http://deb.debian.org/debian bookworm main' >sources
		for what in update "source --download-only perl"; do
			# shellcheck disable=SC2086 # words
			apt-get -q -o Dir::Etc::sourcelist="$PWD/sources" -o Dir::Etc::sourceparts=- \
				-o Dir::State::lists="$lists" $what >apt.out 2>&1 || break
		done
		cd "$work" || return
		tar xf perl/perl_*.orig.tar.xz -C perl 2>/dev/null || return
		perl_source=$(echo "$work"/perl/perl-*/)
	fi
	for module in threads threads-shared; do
		cp "$perl_source/t/test.pl" "$perl_source/dist/$module/t/" || return
	done
}

suite_sqlite() {
	local i

	rm -f one.db two.db
	"$@" sqlite3 one.db >sqlite.out <<'SQL'
CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b TEXT, c REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
	INSERT INTO t SELECT i, i * 7919 % 10007, printf('name %06d', i * 31 % 200000), i / 7.0 FROM n;
CREATE INDEX ta ON t(a);
CREATE INDEX tb ON t(b);
CREATE TRIGGER changes AFTER UPDATE ON t WHEN new.a < 0 BEGIN UPDATE t SET c = -c WHERE id = new.id; END;
SELECT count(*), sum(a), min(b), max(b), round(avg(c), 6) FROM t;
SELECT a % 10, count(*), group_concat(DISTINCT a % 3) FROM t GROUP BY 1 ORDER BY 1;
SELECT x.id, y.id FROM t x JOIN t y ON y.a = x.a AND y.id > x.id ORDER BY 1, 2 LIMIT 20;
SELECT id, sum(a) OVER (ORDER BY id ROWS 3 PRECEDING) FROM t LIMIT 20;
UPDATE t SET a = -a WHERE id % 3 = 0;
DELETE FROM t WHERE id % 5 = 0;
BEGIN; DELETE FROM t; ROLLBACK;
SELECT count(*), sum(a), round(sum(c), 3) FROM t;
SELECT * FROM t WHERE b LIKE '%99%' ORDER BY b, id LIMIT 30;
VACUUM;
PRAGMA integrity_check;
SELECT * FROM t WHERE id % 50 = 1;
SQL
	printf 'shell\t%s\n' "$?"
	awk '{ print "line " NR "\t" $0 }' sqlite.out
	# several at a time in one file
	sqlite3 two.db 'PRAGMA journal_mode=WAL; CREATE TABLE t(who, i);' >/dev/null
	for who in 1 2 3 4; do
		for ((i = 0; i < 100; i++)); do
			echo "INSERT INTO t VALUES ($who, $i);"
		done | "$@" sqlite3 -cmd '.timeout 60000' two.db >&2 &
	done
	for i in 1 2 3 4; do
		wait -n
		printf 'writer %d\t%d\n' "$i" $?
	done
	printf 'written\t%s\n' "$(sqlite3 two.db 'SELECT group_concat(n) FROM (SELECT count(DISTINCT i) AS n FROM t GROUP BY who)')"
}
can_sqlite() {
	why="there is no sqlite3"
	command -v sqlite3 >/dev/null
}

suite_redis() {
	local port=$((20000 + RANDOM % 10000)) server end
	local cli=(redis-cli -p "$port")

	rm -rf redis && mkdir redis
	"$@" redis-server --port "$port" --dir redis --save '' --appendonly yes --enable-debug-command yes \
		--io-threads 2 >redis.out 2>&1 &
	server=$!
	end=$((SECONDS + 30))
	until [[ $("${cli[@]}" ping 2>/dev/null) == PONG ]] || ((SECONDS > end)); do sleep 0.1; done
	redis-benchmark -p "$port" -n 10000 -c 20 -P 2 --threads 2 --csv -t set,get,incr,lpush,rpush,lpop,sadd,hset,spop,lrange_100,mset |
		sed 's/^"\([^"]*\)".*/benchmark \1\tended/'
	for ((i = 0; i < 20000; i++)); do
		echo "SET key:$i $((i * 7919 % 10007))"
		echo "ZADD sorted $((i * 31 % 997)) member:$((i % 5000))"
		echo "HSET hash:$((i % 100)) field:$i $i"
	done | "${cli[@]}" --pipe 2>&1 | tail -n 1 | sed 's/^/pipe\t/'
	"${cli[@]}" bgsave >/dev/null
	"${cli[@]}" debug sleep 0.1 | sed 's/^/sleep\t/'
	"${cli[@]}" eval 'local n = 0; for i = 1, 300000 do n = n + i % 7 end; return n' 0 | sed 's/^/script\t/'
	(echo "SUBSCRIBE channel"; sleep 1) | timeout 5 "${cli[@]}" 2>/dev/null | head -n 1 | sed 's/^/subscribed\t/'
	end=$((SECONDS + 60))
	while "${cli[@]}" info persistence | grep -q 'rdb_bgsave_in_progress:1' && ((SECONDS < end)); do sleep 0.1; done
	"${cli[@]}" bgrewriteaof >/dev/null
	while "${cli[@]}" info persistence | grep -q 'aof_rewrite_\(in_progress\|scheduled\):1' && ((SECONDS < end)); do sleep 0.1; done
	"${cli[@]}" info persistence | tr -d '\r' | grep '_status:' | tr ':' '\t'
	"${cli[@]}" dbsize | sed 's/^/keys\t/'
	"${cli[@]}" debug digest | sed 's/^/digest\t/'
	"${cli[@]}" shutdown
	wait "$server"
	printf 'server\t%d\n' $?
	redis-check-aof redis/appendonlydir/*.manifest 2>&1 | tail -n 1 | sed 's/^/file\t/'
}
can_redis() {
	why="there are no redis-server and redis-benchmark"
	command -v redis-server redis-benchmark >/dev/null
}

# Two processes with a pool of threads each, which answer from files, through gzip and through each other.
suite_nginx() {
	local port=$((20000 + RANDOM % 10000)) server end url path

	rm -rf nginx && mkdir -p nginx/files nginx/logs
	seq 200000 >nginx/files/large
	seq 100 >nginx/files/small
	cat >nginx/conf <<-CONF
		daemon off;
		worker_processes 2;
		pid $work/nginx/pid;
		error_log $work/nginx/logs/error;
		events { worker_connections 256; }
		http {
			access_log $work/nginx/logs/access;
			client_body_temp_path $work/nginx/body;
			proxy_temp_path $work/nginx/proxy;
			fastcgi_temp_path $work/nginx/fastcgi;
			uwsgi_temp_path $work/nginx/uwsgi;
			scgi_temp_path $work/nginx/scgi;
			aio threads;
			sendfile on;
			server {
				listen 127.0.0.1:$port;
				root $work/nginx/files;
				location /zip/ { alias $work/nginx/files/; gzip on; gzip_types *; }
				location /through/ { proxy_pass http://127.0.0.1:$port/; }
				location /limited/ { alias $work/nginx/files/; limit_rate 2m; }
				location /back { return 301 /small; }
			}
		}
	CONF
	# not as root, whose workers could not read our folder
	((UID)) || sed -i '1i user root;' nginx/conf
	"$@" nginx -c "$work/nginx/conf" >nginx.out 2>&1 &
	server=$!
	url=http://127.0.0.1:$port
	end=$((SECONDS + 30))
	until curl -s -o /dev/null "$url/small" || ((SECONDS > end)); do sleep 0.1; done
	for path in small large zip/large through/large through/zip/small limited/large back none; do
		printf '%s\t%s\n' "$path" "$(curl -s --compressed -w '%{http_code} %{size_header}' "$url/$path" | cksum)"
	done
	printf 'range\t%s\n' "$(curl -s -r 1000-500000 "$url/large" | cksum)"
	printf 'put\t%s\n' "$(curl -s -o /dev/null -w '%{http_code}' -T nginx/files/large "$url/small")"
	seq 64 | xargs -P 16 -I{} sh -c "curl -s '$url/through/large?{}' | cksum" | sort | uniq -c | sed 's/^/at once\t/'
	for path in small large zip/small through/small; do
		wrk -t 2 -c 20 -d 2 "$url/$path" | awk -v path="$path" '/requests in/ { n = $1 } /Non-2xx|Socket errors/ { bad = $0 }
			END { print "load of " path "\t" (n > 10 ? "answered" : "not answered") bad }'
	done
	# new workers under load, while the old ones finish
	wrk -t 2 -c 10 -d 3 "$url/small" | awk '/Non-2xx/ { bad = $0 } END { print "anew\tanswered" bad }' &
	sleep 1
	kill -HUP "$(<nginx/pid)"
	wait $!
	printf 'after\t%s\n' "$(curl -s "$url/large" | cksum)"
	kill -QUIT "$(<nginx/pid)"
	wait "$server"
	printf 'server\t%d\n' $?
	printf 'errors\t%d\n' "$(grep -c '\[\(alert\|crit\|emerg\)\]' nginx/logs/error)"
}
can_nginx() {
	why="there are no nginx, wrk and curl"
	command -v nginx wrk curl >/dev/null
}

# under BACKEND COMMAND...: with another folder for each command, of which some run at one time
cat >under <<SCRIPT
#!/bin/bash
backend=\$1
shift
exec "$causal" -q -e -n 1 -s 50 -b "\$backend" -o "\$(mktemp -d "$work/results-XXXXXX")" -- "\$@"
SCRIPT
chmod +x under

find_backends
for suite in ${SUITES:-python perl sqlite redis nginx}; do
	if ! "can_$suite"; then
		skip "$suite: $why"
		continue
	fi
	"suite_$suite" env 2>alone.err | sort -u >alone
	(($(wc -l <alone) > 5)) || bad "$suite: it does not run alone: $(tail -n 3 alone.err)"
	for backend in "${backends[@]}"; do
		"suite_$suite" "$work/under" "$backend" 2>under.err | sort -u >now
		cp alone seen
		for again in 1 2 3; do
			# results that did not come alone, and tests that came only there
			{
				comm -13 seen now
				comm -13 <(cut -f 1 now | sort -u) <(cut -f 1 alone | sort -u)
			} >differ
			[[ -s differ ]] || break
			echo "$suite, $backend, try $again: $(wc -l <differ) differ: $(head -n 5 differ | tr '\t\n' ' ;')"
			((again < 3)) || break
			"suite_$suite" env 2>alone.err | sort -u | sort -u - seen >union && mv union seen
			"suite_$suite" "$work/under" "$backend" 2>under.err | sort -u >now
		done
		printf '%-8s %-6s %5d results, %d differ; %d programs under causal\n' "$suite" "$backend" \
			"$(wc -l <now)" "$(wc -l <differ)" \
			"$(find . -path './results-*/run-*.jsonl' -exec grep -l '"type":"end"' {} + | wc -l)"
		if [[ -s differ ]]; then
			bad "$suite with $backend: $(head -n 20 differ)"
		else
			good
		fi
		rm -rf results-*
	done
done
finish
