dnl SPDX-License-Identifier: MIT
dnl protobuf-c and its compiler: the perfetto sink.
AC_DEFUN([CA_PROTOBUF_C], [
	AC_CHECK_PROGS([PROTOC_C], [protoc-c])
	AS_IF([test -z "$PROTOC_C" && test -z "$with_protobuf_c"],
		[with_protobuf_c=no ca_no_protoc_c=yes])
	CA_OPTIONAL([PROTOBUF_C], [protobuf_c], [libprotobuf-c], [libprotobuf-c-dev protobuf-c-compiler],
		[the perfetto sink])
	AS_IF([test -n "$ca_no_protoc_c"],
		[have_protobuf_c="no (protoc-c not found; Debian: protobuf-c-compiler)"])
	AS_IF([test "x$have_protobuf_c" = xyes && test -z "$PROTOC_C"],
		[AC_MSG_ERROR([--with-protobuf_c was given, but protoc-c is missing; on Debian: apt-get install protobuf-c-compiler])])
])
