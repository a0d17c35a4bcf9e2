/* SPDX-License-Identifier: Apache-2.0
 * What one rank sends to whom in a collective operation, by the algorithms that Open MPI 4.1 chooses among by
 * default (its coll/tuned); segments of a pipeline count as one message.  Pure.
 * docs/protocol/8-rankmap-files.md, "The tracer". */
#ifndef SEKISHO_RANKMAP_TRACE_COLLECTIVES_H
#define SEKISHO_RANKMAP_TRACE_COLLECTIVES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int rank, size;                                         /* of the communicator */
  void (*sent)(void *context, int peer, uint64_t bytes);  /* called for each message */
  void *context;
} traffic_caller;

/* A block is what one rank gives or gets, in bytes; `blocks` has one for each rank. */
void traffic_barrier(const traffic_caller *caller);
void traffic_bcast(const traffic_caller *caller, int root, uint64_t bytes);
void traffic_reduce(const traffic_caller *caller, int root, uint64_t bytes);
void traffic_allreduce(const traffic_caller *caller, uint64_t bytes);
void traffic_gather(const traffic_caller *caller, int root, uint64_t block);
void traffic_gatherv(const traffic_caller *caller, int root, uint64_t own);
void traffic_scatter(const traffic_caller *caller, int root, uint64_t block);
void traffic_scatterv(const traffic_caller *caller, int root, const uint64_t *blocks);
void traffic_allgather(const traffic_caller *caller, uint64_t block);
void traffic_allgatherv(const traffic_caller *caller, const uint64_t *blocks);
void traffic_alltoall(const traffic_caller *caller, uint64_t block);
void traffic_alltoallv(const traffic_caller *caller, const uint64_t *blocks);
void traffic_reduce_scatter(const traffic_caller *caller, const uint64_t *blocks);
void traffic_reduce_scatter_block(const traffic_caller *caller, uint64_t block);
void traffic_scan(const traffic_caller *caller, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
