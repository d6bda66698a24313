dnl SPDX-License-Identifier: MIT
dnl expat: settings from a file in XML.
AC_DEFUN([CA_EXPAT], [
	CA_OPTIONAL([EXPAT], [expat], [expat], [libexpat1-dev], [settings from a file in XML])
])
