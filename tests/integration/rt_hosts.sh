#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/apps/hosts.c: see there for what each case does.
exec "${BASH:-bash}" "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt_cases.sh" hosts \
	main_leaves small_stack asked_masks own_signals jumps:early lock_all:brief address_space sent_faults
