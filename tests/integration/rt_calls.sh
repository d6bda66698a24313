#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/apps/calls.c: see there for what each case does.
exec "${BASH:-bash}" "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt_cases.sh" calls \
	files:early locks queues:early streams cancel ends shells:early old_signals limits
