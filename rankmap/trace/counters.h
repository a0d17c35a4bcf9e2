/* SPDX-License-Identifier: Apache-2.0
 * What this rank has sent to each rank of MPI_COMM_WORLD, and the file that it becomes. */
#ifndef SEKISHO_RANKMAP_TRACE_COUNTERS_H
#define SEKISHO_RANKMAP_TRACE_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

#include <mpi.h>

#include "rankmap/trace/collectives.h"

void counters_begin(int thread_level);
void counters_end(void); /* collective: rank 0 writes the file */

/* MPI_Pcontrol: 0 pauses, 1 goes on, 2 ends an iteration. */
void counters_control(int level);

typedef struct {
  uint64_t bytes, messages;
} traffic_count;

/* What every call needs is side by side: while a program computes, each line and each page of ours is driven out of its
 * caches, and to fetch them takes longer than to count. */
#define SIDE_BY_SIDE __attribute__((section(".data.quick")))

/* All that most sends need. */
typedef struct {
  atomic_int is_counting;
  int world_size;        /* 0: more than one thread may send at once, which needs more care */
  MPI_Datatype type;     /* the last predefined one */
  uint64_t type_size;
  traffic_count *counts; /* by rank of MPI_COMM_WORLD */
} __attribute__((aligned(64))) quick_counter;
extern quick_counter quick __attribute__((visibility("hidden")));

void counters_sent_with_care(MPI_Comm comm, int peer, int64_t count, MPI_Datatype type);
static inline void counters_sent(MPI_Comm comm, int peer, int64_t count, MPI_Datatype type) {
  if (!atomic_load_explicit(&quick.is_counting, memory_order_relaxed)) {
    return;
  }
  if (comm == MPI_COMM_WORLD && (unsigned)peer < (unsigned)quick.world_size && type == quick.type && count >= 0) {
    quick.counts[peer].bytes += (uint64_t)count * quick.type_size;
    quick.counts[peer].messages += 1;
  } else {
    counters_sent_with_care(comm, peer, count, type);
  }
}
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
