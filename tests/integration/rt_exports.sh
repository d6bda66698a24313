#!/bin/bash
# SPDX-License-Identifier: MIT
# What libcausal-rt.so shows to the program: its wrappers and a few more, nothing else; and it
# needs libc alone.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99
runtime=$build/.libs/libcausal-rt.so
read -ra nm <<< "${NM:-nm}"

"${nm[@]}" -D --defined-only "$runtime" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | sort -u >have
{
	sed -n 's/^\tX(\([a-zA-Z0-9_]*\), ".*/\1/p' "$source_dir/causal/runtime/real.h"
	# OpenMP's are named by macros in their file
	sed -n -e 's/^\(PARALLEL\|LOOP\|LOOP_CHUNK\|OMP_WAIT\|OMP_LOCK\|OMP_MEET\|OMP_BARRIER\|OMP_BARRIER_OF\|OMP_JUMP\)(\([A-Za-z0-9_]*\)[,)].*/\2/p' \
		-e 's/^OMP_BARRIER_SAYS([a-z_]*, \([A-Za-z_]*\)).*/\1/p' \
		"$source_dir/causal/runtime/wrap_omp.c" | grep -v '^name$'
	# MPI's, each in C and twice in Fortran
	sed -n 's/^MPI_[WAITME]*(\([A-Za-z_]*\), \([a-z_]*\))$/MPI_\1\nmpi_\2_\nmpi_\2_f08_/p' "$source_dir/causal/runtime/wrap_mpi.c"
	printf '%s\n' __asan_default_options GOMP_parallel_reductions ompt_start_tool _coz_get_counter _coz_pre_block _coz_post_block _coz_catch_up __cxa_begin_catch causal_trace_loaded_ _causal_wrapping
} | sort >want
at_least "names in the table" 100 "$(wc -l <want)"
check "exported, but not in the table" "" "$(comm -23 have want | tr '\n' ' ')"
check "in the table, but not exported" "" "$(comm -13 have want | tr '\n' ' ')"
check "libraries that it needs" "libc.so.6" \
	"$(LC_ALL=C readelf -d "$runtime" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^ld-linux' | tr '\n' ' ' | sed 's/ $//')"
check "thread-local storage that would be allocated late" "" "$("${nm[@]}" -D "$runtime" | grep -o '__tls_get_addr' | head -1)"
finish
