/* SPDX-License-Identifier: Apache-2.0
 * Where the ranks of communicators, windows and virtual topologies are in MPI_COMM_WORLD. */
#ifndef SEKISHO_RANKMAP_TRACE_PLACES_H
#define SEKISHO_RANKMAP_TRACE_PLACES_H

#include <mpi.h>

/* Of a thread's variables: the library is loaded with the program, so they are found without a call. */
#define IN_PROGRAM __attribute__((tls_model("initial-exec")))

void places_begin(void);
void places_end(void);

/* -1: none, or of another world. */
int place_in_comm(MPI_Comm comm, int peer);
int place_in_window(MPI_Win window, int target);

/* Whom a neighbourhood operation sends to, in the order of its blocks, by ranks of `comm`; to be freed.
 * Null: there are none. */
int *neighbours_of(MPI_Comm comm, int *count);

#endif
