dnl SPDX-License-Identifier: MIT
dnl CA_SUMMARY: what was decided, at the end of configure.
AC_DEFUN([CA_SUMMARY], [
	AC_MSG_NOTICE([
	causal $PACKAGE_VERSION for $host
	compiler       $CC $CFLAGS
	warnings       as errors: $enable_werror
	sanitizers     ${SANITIZER:-none}
	prefix         $prefix
	required       libelf, libdw, capstone, libiberty, json-c: found
	unit tests     cmocka: $have_cmocka
	optional       libunwind: $have_libunwind
	               PAPI:      $have_papi
	               expat:     $have_expat
	               hsa-rocr:  $have_hsa_rocr
	               protobuf-c: $have_protobuf_c
	python3        $have_PYTHON3
	               plots:     $have_PYTHON_MATPLOTLIB
	               schemas:   $have_PYTHON_JSONSCHEMA
])
])
