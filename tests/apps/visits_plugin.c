/* SPDX-License-Identifier: MIT */
/* Opened late by visits.c. */
int plugged(int n);

__attribute__((noinline)) int plugged(int n)
{
	return n + 1;
}
