#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/apps/processes.c: see there for what each case does.
exec "${BASH:-bash}" "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt_cases.sh" processes \
	fork fork_threads vfork spawn clean_exec exec_storm failed_exec raw_fork:early
