dnl SPDX-License-Identifier: MIT
dnl libelf (elfutils): ELF files.
AC_DEFUN([CA_LIBELF], [CA_REQUIRED([LIBELF], [libelf], [libelf-dev])])
