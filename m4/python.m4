dnl CA_PYTHON: the python3 for plots and for tests in Python. A machine may have several, and
dnl the distribution's packages belong to the distribution's own: take the first that has them.
AC_DEFUN([CA_PYTHON], [
	AC_ARG_VAR([PYTHON3], [Python 3 with matplotlib and jsonschema])
	AC_MSG_CHECKING([for python3 with matplotlib and jsonschema])
	have_python=no
	AS_IF([test -n "$PYTHON3"], [ca_pythons=$PYTHON3], [ca_pythons="python3 /usr/bin/python3"])
	PYTHON3=
	for ca_python in $ca_pythons; do
		AS_IF([command -v $ca_python >/dev/null 2>&1], [
			ca_missing=`$ca_python -c '
import importlib.util as u
print(*[[m for m in ("matplotlib", "jsonschema") if not u.find_spec(m)]])' 2>/dev/null`
			AS_IF([test -z "$PYTHON3" || test -z "$ca_missing"], [
				PYTHON3=`command -v $ca_python`
				have_python="$PYTHON3${ca_missing:+ (without $ca_missing)}"])
			AS_IF([test -z "$ca_missing"], [break])
		])
	done
	AC_MSG_RESULT([$have_python])
	AM_CONDITIONAL([HAVE_PYTHON3], [test -n "$PYTHON3"])
])
