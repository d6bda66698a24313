dnl SPDX-License-Identifier: MIT
dnl capstone: instruction decoding.
AC_DEFUN([CA_CAPSTONE], [CA_REQUIRED([CAPSTONE], [capstone >= 4.0], [libcapstone-dev])])
