#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/apps/signals.c: see there for what each case does.
exec "${BASH:-bash}" "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt_cases.sh" signals \
	block_all ours sigwait signalfd sigsuspend profiled trap no_eintr eintr longjmp
