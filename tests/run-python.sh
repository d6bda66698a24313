#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Run a test that is written in Python, with an interpreter that has the module that the test says
# it needs (it skips what it must without); or skip it with a reason.
module=$(sed -n 's/^# needs //p' "$1")
fit=CA_PYTHON_${module^^}
python=${!fit:-${CA_PYTHON3:-}}
if [ -z "$python" ]; then
	echo "skipped: configure found no python3"
	exit 77
fi
exec "$python" "$@"
