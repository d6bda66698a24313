#!/usr/bin/env bash
# Run a test that is written in Python, or skip it with a reason.
if [ -z "${CA_PYTHON3:-}" ]; then
	echo "skipped: configure found no python3"
	exit 77
fi
exec "$CA_PYTHON3" "$@"
