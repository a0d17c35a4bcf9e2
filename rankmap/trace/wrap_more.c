/* SPDX-License-Identifier: Apache-2.0
 * One-sided operations count as a message to the target, or from it; those of a neighbourhood as one to each
 * neighbour. */
#include "rankmap/trace/wrap.h"

#include <stddef.h>

#include "rankmap/trace/counters.h"

/* ---- one-sided */

#define ORIGIN const void *data, int count, MPI_Datatype type
#define TARGET int target, MPI_Aint place, int there, MPI_Datatype type_there
TRACED_BOTH(Put, Rput, (ORIGIN, TARGET, MPI_Win window), (data, count, type, target, place, there, type_there, window),
            counters_put(window, target, count, type))
TRACED_BOTH(Get, Rget, (void *data, int count, MPI_Datatype type, TARGET, MPI_Win window),
            (data, count, type, target, place, there, type_there, window), counters_got(window, target, count, type))
TRACED_BOTH(Accumulate, Raccumulate, (ORIGIN, TARGET, MPI_Op op, MPI_Win window),
            (data, count, type, target, place, there, type_there, op, window), counters_put(window, target, count, type))

static void both_ways(MPI_Win window, int target, int count, MPI_Datatype type, int back, MPI_Datatype type_back) {
  counters_put(window, target, count, type);
  counters_got(window, target, back, type_back);
}
TRACED_BOTH(Get_accumulate, Rget_accumulate,
            (ORIGIN, void *result, int room, MPI_Datatype result_type, TARGET, MPI_Op op, MPI_Win window),
            (data, count, type, result, room, result_type, target, place, there, type_there, op, window),
            both_ways(window, target, op == MPI_NO_OP ? 0 : count, type, room, result_type))
TRACED(Fetch_and_op,
       (const void *data, void *result, MPI_Datatype type, int target, MPI_Aint place, MPI_Op op, MPI_Win window),
       (data, result, type, target, place, op, window),
       both_ways(window, target, op == MPI_NO_OP ? 0 : 1, type, 1, type))
TRACED(Compare_and_swap,
       (const void *data, const void *wanted, void *result, MPI_Datatype type, int target, MPI_Aint place,
        MPI_Win window),
       (data, wanted, result, type, target, place, window), both_ways(window, target, 2, type, 1, type))

/* ---- neighbourhoods */

TRACED_BOTH(Neighbor_allgather, Ineighbor_allgather,
            (ORIGIN, void *to, int room, MPI_Datatype to_type, MPI_Comm comm),
            (data, count, type, to, room, to_type, comm), counters_neighbours(comm, count, NULL, type, NULL))
TRACED_BOTH(Neighbor_allgatherv, Ineighbor_allgatherv,
            (ORIGIN, void *to, const int rooms[], const int places[], MPI_Datatype to_type, MPI_Comm comm),
            (data, count, type, to, rooms, places, to_type, comm), counters_neighbours(comm, count, NULL, type, NULL))
TRACED_BOTH(Neighbor_alltoall, Ineighbor_alltoall, (ORIGIN, void *to, int room, MPI_Datatype to_type, MPI_Comm comm),
            (data, count, type, to, room, to_type, comm), counters_neighbours(comm, count, NULL, type, NULL))
TRACED_BOTH(Neighbor_alltoallv, Ineighbor_alltoallv,
            (const void *data, const int counts[], const int places[], MPI_Datatype type, void *to, const int rooms[],
             const int to_places[], MPI_Datatype to_type, MPI_Comm comm),
            (data, counts, places, type, to, rooms, to_places, to_type, comm),
            counters_neighbours(comm, 0, counts, type, NULL))
TRACED_BOTH(Neighbor_alltoallw, Ineighbor_alltoallw,
            (const void *data, const int counts[], const MPI_Aint places[], const MPI_Datatype types[], void *to,
             const int rooms[], const MPI_Aint to_places[], const MPI_Datatype to_types[], MPI_Comm comm),
            (data, counts, places, types, to, rooms, to_places, to_types, comm),
            counters_neighbours(comm, 0, counts, MPI_BYTE, types))
