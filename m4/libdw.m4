dnl SPDX-License-Identifier: MIT
dnl libdw (elfutils): DWARF and CFI.
AC_DEFUN([CA_LIBDW], [CA_REQUIRED([LIBDW], [libdw >= 0.180], [libdw-dev])])
