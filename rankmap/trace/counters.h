/* SPDX-License-Identifier: Apache-2.0
 * What this rank has sent to each rank of MPI_COMM_WORLD, and the file that it becomes. */
#ifndef SEKISHO_RANKMAP_TRACE_COUNTERS_H
#define SEKISHO_RANKMAP_TRACE_COUNTERS_H

#include <stdint.h>

#include <mpi.h>

#include "rankmap/trace/collectives.h"

void counters_begin(int thread_level);
void counters_end(void); /* collective: rank 0 writes the file */

/* MPI_Pcontrol: 0 pauses, 1 goes on, 2 ends an iteration. */
void counters_control(int level);

void counters_sent(MPI_Comm comm, int peer, int64_t count, MPI_Datatype type);
/* One-sided: given to the target, or fetched from it. */
void counters_put(MPI_Win window, int target, int64_t count, MPI_Datatype type);
void counters_got(MPI_Win window, int target, int64_t count, MPI_Datatype type);
/* To each neighbour of a virtual topology `count` elements of `type`, or (not null) `counts[i]`, `types[i]`. */
void counters_neighbours(MPI_Comm comm, int64_t count, const int counts[], MPI_Datatype type, const MPI_Datatype types[]);
/* A persistent request counts when it is started. */
void counters_prepared(MPI_Request request, MPI_Comm comm, int peer, int64_t count, MPI_Datatype type);
void counters_started(MPI_Request request);
void counters_freed(MPI_Request request);

/* For collective operations; 0: nothing is counted now, or `comm` has two groups. */
typedef struct {
  traffic_caller caller;
  MPI_Comm comm;
} counted_comm;
int counters_collective(MPI_Comm comm, counted_comm *out);

uint64_t bytes_of(int64_t count, MPI_Datatype type);

#endif
