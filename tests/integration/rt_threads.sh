#!/bin/bash
# tests/apps/threads.c: see there for what each case does.
exec "${BASH:-bash}" "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt_cases.sh" threads \
	churn crowd exit cancel cancel_main detached c11 raw_clone notify destructors tiny_stack alternate_stack main_exit
