#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/apps/limits.c: see there for what each case does.
exec "${BASH:-bash}" "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt_cases.sh" limits \
	descriptors lowest_descriptor no_descriptors many_threads seccomp_errno \
	seccomp_kill:early seccomp_arguments:brief seccomp_list:early seccomp_strict:early deep
