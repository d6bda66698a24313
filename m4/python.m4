dnl SPDX-License-Identifier: MIT
dnl CA_PYTHON: python3 for tests in Python; and those that have what plots and the schema tests
dnl need, each a question of its own, for no interpreter need have both.
AC_DEFUN([CA_PYTHON], [
	AC_ARG_VAR([PYTHON3], [the one Python 3 to use, in place of the first that is fit])
	CA_PYTHON_WITH([PYTHON_MATPLOTLIB], [matplotlib])
	CA_PYTHON_WITH([PYTHON_JSONSCHEMA], [jsonschema])
	CA_PYTHON_WITH([PYTHON3])
])

dnl CA_PYTHON_WITH(VARIABLE, [MODULE])
AC_DEFUN([CA_PYTHON_WITH], [
	AC_MSG_CHECKING([for python3 m4_ifval([$2], [with $2])])
	$1=`PYTHON3=$PYTHON3 $SHELL "$srcdir/scripts/python3.sh" $2`
	AC_SUBST([$1])
	have_$1="${$1:-no m4_ifval([$2], [(Debian: python3-$2)])}"
	AC_MSG_RESULT([$have_$1])
])
