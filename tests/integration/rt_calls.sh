#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/apps/calls.c: see there for what each case does, and matrix.list for which.
exec "${BASH:-bash}" "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt_cases.sh" calls
