dnl SPDX-License-Identifier: MIT
dnl CA_CORE_DIR: configure sweeps up core dumps with "rm -f core ..."; core/ is a folder here, so
dnl that rm would complain, fail, and leave the rest of the sweep undone.
AC_DEFUN([CA_CORE_DIR], [
rm () {
	if test "x$[1] $[2]" = "x-f core"; then
		shift 2
		command rm -f "$[@]"
	else
		command rm "$[@]"
	fi
}
])
