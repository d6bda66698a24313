/* SPDX-License-Identifier: MIT */
/* MPI: its libraries wait in loops that read memory which other ranks write, so nothing tells that a rank waits, nor
 * that it hands something over. Its calls do: before each the rank pays, and in those that end when another rank has
 * come to some point it waits for others. What the library itself does there (copying, adding up) is part of
 * the wait.
 *
 * In C, by the names of Fortran 77 and of the module mpi_f08. Which arguments there are is the library's: each call
 * has so many words of them at most, and what a call has fewer are words of its caller's stack that nobody
 * reads. None is a floating-point number. Who looks whether there is MPI, by a weak name, asks for MPI_Init or
 * MPI_Initialized, which are left alone. */
#include "causal/runtime/wrap.h"

#define WORDS                                                                                                \
	long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l, long m
#define ALL      a, b, c, d, e, f, g, h, i, j, k, l, m
#define REAL_MPI ((long (*)(WORDS))ca_real_for(__func__, __builtin_return_address(0)))

enum { ERR_OTHER = 16 }; /* of a program that calls a function which its library does not have */

#define CALL(name, meeting, done)                                                                            \
	long name(WORDS);                                                                                    \
	CA_EXPORT long name(WORDS)                                                                           \
	{                                                                                                    \
		long (*real)(WORDS) = REAL_MPI, result = ERR_OTHER;                                          \
                                                                                                             \
		meeting;                                                                                     \
		if (real)                                                                                    \
			result = real(ALL);                                                                  \
		done;                                                                                        \
		return result;                                                                               \
	}
#define WAITS(name) CALL(name, struct ca_waiting w = ca_wait_begin(CA_WAIT_OTHERS, -1), ca_wait_end(&w))
#define MEETS(name) CALL(name, ca_wait_meet(), )
#define MPI_WAIT(name, fortran)                                                                              \
	WAITS(MPI_##name)                                                                                    \
	WAITS(mpi_##fortran##_)                                                                              \
	WAITS(mpi_##fortran##_f08_)
#define MPI_MEET(name, fortran)                                                                              \
	MEETS(MPI_##name)                                                                                    \
	MEETS(mpi_##fortran##_)                                                                              \
	MEETS(mpi_##fortran##_f08_)

MPI_WAIT(Send, send)
MPI_WAIT(Ssend, ssend)
MPI_WAIT(Rsend, rsend)
MPI_WAIT(Recv, recv)
MPI_WAIT(Mrecv, mrecv)
MPI_WAIT(Sendrecv, sendrecv)
MPI_WAIT(Sendrecv_replace, sendrecv_replace)
MPI_WAIT(Wait, wait)
MPI_WAIT(Waitall, waitall)
MPI_WAIT(Waitany, waitany)
MPI_WAIT(Waitsome, waitsome)
MPI_WAIT(Probe, probe)
MPI_WAIT(Mprobe, mprobe)
MPI_WAIT(Barrier, barrier)
MPI_WAIT(Bcast, bcast)
MPI_WAIT(Gather, gather)
MPI_WAIT(Gatherv, gatherv)
MPI_WAIT(Scatter, scatter)
MPI_WAIT(Scatterv, scatterv)
MPI_WAIT(Allgather, allgather)
MPI_WAIT(Allgatherv, allgatherv)
MPI_WAIT(Alltoall, alltoall)
MPI_WAIT(Alltoallv, alltoallv)
MPI_WAIT(Alltoallw, alltoallw)
MPI_WAIT(Reduce, reduce)
MPI_WAIT(Allreduce, allreduce)
MPI_WAIT(Reduce_scatter, reduce_scatter)
MPI_WAIT(Reduce_scatter_block, reduce_scatter_block)
MPI_WAIT(Scan, scan)
MPI_WAIT(Exscan, exscan)
MPI_WAIT(Neighbor_allgather, neighbor_allgather)
MPI_WAIT(Neighbor_allgatherv, neighbor_allgatherv)
MPI_WAIT(Neighbor_alltoall, neighbor_alltoall)
MPI_WAIT(Neighbor_alltoallv, neighbor_alltoallv)
MPI_WAIT(Neighbor_alltoallw, neighbor_alltoallw)
MPI_WAIT(Win_fence, win_fence)
MPI_WAIT(Win_lock, win_lock)
MPI_WAIT(Win_lock_all, win_lock_all)
MPI_WAIT(Win_unlock, win_unlock)
MPI_WAIT(Win_unlock_all, win_unlock_all)
MPI_WAIT(Win_flush, win_flush)
MPI_WAIT(Win_flush_all, win_flush_all)
MPI_WAIT(Win_start, win_start)
MPI_WAIT(Win_complete, win_complete)
MPI_WAIT(Win_wait, win_wait)
MPI_WAIT(Win_create, win_create)
MPI_WAIT(Win_allocate, win_allocate)
MPI_WAIT(Win_allocate_shared, win_allocate_shared)
MPI_WAIT(Win_free, win_free)
MPI_WAIT(Comm_dup, comm_dup)
MPI_WAIT(Comm_split, comm_split)
MPI_WAIT(Comm_split_type, comm_split_type)
MPI_WAIT(Comm_create, comm_create)
MPI_WAIT(Comm_free, comm_free)
MPI_WAIT(Finalize, finalize)
/* these hand over, or look */
MPI_MEET(Bsend, bsend)
MPI_MEET(Isend, isend)
MPI_MEET(Issend, issend)
MPI_MEET(Irsend, irsend)
MPI_MEET(Ibsend, ibsend)
MPI_MEET(Start, start)
MPI_MEET(Startall, startall)
MPI_MEET(Test, test)
MPI_MEET(Testall, testall)
MPI_MEET(Testany, testany)
MPI_MEET(Testsome, testsome)
MPI_MEET(Iprobe, iprobe)
MPI_MEET(Improbe, improbe)
MPI_MEET(Put, put)
MPI_MEET(Get, get)
MPI_MEET(Accumulate, accumulate)
MPI_MEET(Get_accumulate, get_accumulate)
MPI_MEET(Fetch_and_op, fetch_and_op)
MPI_MEET(Compare_and_swap, compare_and_swap)
MPI_MEET(Win_post, win_post)
MPI_MEET(Win_test, win_test)
MPI_MEET(Ibarrier, ibarrier)
MPI_MEET(Ibcast, ibcast)
MPI_MEET(Igather, igather)
MPI_MEET(Igatherv, igatherv)
MPI_MEET(Iscatter, iscatter)
MPI_MEET(Iscatterv, iscatterv)
MPI_MEET(Iallgather, iallgather)
MPI_MEET(Iallgatherv, iallgatherv)
MPI_MEET(Ialltoall, ialltoall)
MPI_MEET(Ialltoallv, ialltoallv)
MPI_MEET(Ialltoallw, ialltoallw)
MPI_MEET(Ireduce, ireduce)
MPI_MEET(Iallreduce, iallreduce)
MPI_MEET(Ireduce_scatter, ireduce_scatter)
MPI_MEET(Ireduce_scatter_block, ireduce_scatter_block)
MPI_MEET(Iscan, iscan)
MPI_MEET(Iexscan, iexscan)
