// SPDX-License-Identifier: MIT
// Kokkos: its kernels, fences, copies and regions as regions of the call graph, without a change:
//   KOKKOS_TOOLS_LIBS=libcausal.so causal trace --sinks callgraph -- ./kokkos
#include <Kokkos_Core.hpp>
#include <cstdio>

int main(int argc, char **argv)
{
	Kokkos::ScopeGuard guard(argc, argv);
	Kokkos::View<double *> x("x", 1000), y("y", 1000);
	double sum = 0;

	for (int step = 0; step < 3; step++) {
		Kokkos::Profiling::pushRegion("step");
		Kokkos::parallel_for("axpy", 1000, KOKKOS_LAMBDA(int i) { y(i) = 2 * x(i) + step; });
		Kokkos::parallel_reduce("sum", 1000, KOKKOS_LAMBDA(int i, double &s) { s += y(i); }, sum);
		Kokkos::Profiling::popRegion();
	}
	Kokkos::deep_copy(x, y);
	std::printf("%g\n", sum);
	return sum == 2000 ? 0 : 1;
}
