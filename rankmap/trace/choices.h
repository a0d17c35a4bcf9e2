/* SPDX-License-Identifier: Apache-2.0
 * Which algorithm Open MPI 4.1 takes for a collective operation by default: its coll/tuned decides by the number of ranks
 * and by bytes.  Pure. */
#ifndef SEKISHO_RANKMAP_TRACE_CHOICES_H
#define SEKISHO_RANKMAP_TRACE_CHOICES_H

#include <stdint.h>

typedef enum { BCAST_LINEAR, BCAST_CHAIN, BCAST_BINARY, BCAST_BINOMIAL, BCAST_KNOMIAL, BCAST_SCATTERED } bcast_choice;
typedef enum { REDUCE_LINEAR, REDUCE_CHAIN, REDUCE_BINARY, REDUCE_BINOMIAL } reduce_choice;
typedef enum { ALLREDUCE_REDUCED, ALLREDUCE_DOUBLING, ALLREDUCE_RING, ALLREDUCE_HALVING } allreduce_choice;
typedef enum { STRAIGHT, BY_TREE } root_choice; /* gather, scatter */
typedef enum { GATHERED_FIRST, GATHER_BRUCK, GATHER_DOUBLING, GATHER_RING, GATHER_NEIGHBOURS } allgather_choice;
typedef enum { PAIRS, ALLTOALL_BRUCK } alltoall_choice;
typedef enum { REDUCED_FIRST, SCATTER_DOUBLING, SCATTER_HALVING, SCATTER_BUTTERFLY, SCATTER_RING } reduce_scatter_choice;
typedef enum { BARRIER_LINEAR, BARRIER_DOUBLING, BARRIER_BRUCK } barrier_choice;

/* `bytes`: of the whole message for bcast, reduce, allreduce; all ranks' together for reduce_scatter; of a rank's block (their
 * mean) for the others. */
bcast_choice choose_bcast(int ranks, uint64_t bytes);
reduce_choice choose_reduce(int ranks, uint64_t bytes);
allreduce_choice choose_allreduce(int ranks, uint64_t bytes);
root_choice choose_gather(int ranks, uint64_t bytes);
root_choice choose_scatter(int ranks, uint64_t bytes);
allgather_choice choose_allgather(int ranks, uint64_t bytes);
allgather_choice choose_allgatherv(int ranks, uint64_t bytes);
alltoall_choice choose_alltoall(int ranks, uint64_t bytes);
reduce_scatter_choice choose_reduce_scatter(int ranks, uint64_t bytes);
reduce_scatter_choice choose_reduce_scatter_block(int ranks, uint64_t bytes);
barrier_choice choose_barrier(int ranks);

#endif
