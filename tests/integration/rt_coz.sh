#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs built with Coz's own header work as they are.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

# Coz's own header
if echo '#include <coz.h>' | "${cc[@]}" -E - >/dev/null 2>&1; then
	cat >coz.c <<'C'
#include <coz.h>
__attribute__((noinline)) static void request(void)
{
	for (volatile int k = 0; k < 60000; k++)
		;
}
int main(void)
{
	for (int i = 0; i < 20000; i++) {
		COZ_BEGIN("request");
		request();
		COZ_END("request");
		COZ_PROGRESS_NAMED("coz point");
	}
	return 0;
}
C
	"${cc[@]}" -g -O2 coz.c -o coz -ldl || bad "cannot build coz.c"
	profile -w 1000 -- ./coz # without experiments all visits are in the sum
	check "coz: exit status" 0 "$status"
	at_least "coz: visits" 20000 "$(total visits)"
	profile -s 0 -- ./coz
	at_least "coz: point in the records" 1 "$(grep -c 'coz point' results/run-0001.jsonl)"
	at_least "coz: latency in the records" 1 "$(grep -c '"point":"request","kind":"latency"' results/run-0001.jsonl)"
else
	skip "Coz's macros: there is no coz.h (Debian: coz-profiler)"
fi
finish
