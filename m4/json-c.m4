dnl SPDX-License-Identifier: MIT
dnl json-c: run files, profiles and configuration files.
AC_DEFUN([CA_JSON_C], [CA_REQUIRED([JSON_C], [json-c >= 0.13], [libjson-c-dev])])
