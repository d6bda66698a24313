#!/bin/sh
# SPDX-License-Identifier: MIT
# Usage: python3.sh [MODULE]: print the first Python 3 that has MODULE, or the first that runs. A
# machine may have several (pyenv, conda), and what Debian installs belongs to Debian's own.
# PYTHON3 in the environment: ask only that one. Exit status 1, and no output: there is none.
# configure asks this, and so does try.sh, each time: packages come after configure, too.
for python in ${PYTHON3:-python3 /usr/bin/python3}; do
	if "$python" -c "import sys${1:+, $1}; sys.exit(sys.version_info < (3, 8))" > /dev/null 2>&1; then
		command -v "$python"
		exit 0
	fi
done
exit 1
