#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/apps/threads.c: see there for what each case does.
exec "${BASH:-bash}" "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt_cases.sh" threads \
	churn:brief crowd:brief exit cancel cancel_main detached:brief c11 raw_clone:brief notify:brief \
	destructors:brief tiny_stack alternate_stack main_exit
