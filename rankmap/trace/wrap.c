/* SPDX-License-Identifier: Apache-2.0
 * libsekisho-traffic: loaded into an MPI program (LD_PRELOAD), it counts what each rank sends to whom.
 * docs/protocol/8-rankmap-files.md, "The tracer".
 *
 * Here: begin and end, messages, collectives; one-sided and neighbourhood operations are in wrap_more.c. */
#include "rankmap/trace/wrap.h"

#include <stdlib.h>

#include "rankmap/trace/counters.h"

/* ---- begin and end */

static int began(int code) {
  int level = MPI_THREAD_SINGLE;
  if (code == MPI_SUCCESS) {
    PMPI_Query_thread(&level);
    counters_begin(level);
  }
  return code;
}

static int (*next_Init)(int *, char ***);
static int (*next_Init_thread)(int *, char ***, int, int *);
__attribute__((constructor)) static void find_begin(void) {
  *(void **)&next_Init = dlsym(RTLD_NEXT, "PMPI_Init");
  *(void **)&next_Init_thread = dlsym(RTLD_NEXT, "PMPI_Init_thread");
}
EXPORTED int MPI_Init(int *argc, char ***argv) { return began(next_Init(argc, argv)); }
EXPORTED int PMPI_Init(int *argc, char ***argv) __attribute__((alias("MPI_Init")));
EXPORTED int MPI_Init_thread(int *argc, char ***argv, int wanted, int *given) {
  return began(next_Init_thread(argc, argv, wanted, given));
}
EXPORTED int PMPI_Init_thread(int *argc, char ***argv, int wanted, int *given) __attribute__((alias("MPI_Init_thread")));

TRACED(Finalize, (void), (), counters_end())
EXPORTED int MPI_Pcontrol(const int level, ...) {
  counters_control(level);
  return MPI_SUCCESS;
}

/* ---- from one rank to another */

#define SEND(name)                                                                                            \
  TRACED(name, (const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm),             \
         (data, count, type, peer, tag, comm), counters_sent(comm, peer, count, type))
#define ISEND(name)                                                                                           \
  TRACED(name, (const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request), \
         (data, count, type, peer, tag, comm, request), counters_sent(comm, peer, count, type))
SEND(Send) SEND(Bsend) SEND(Ssend) SEND(Rsend)
ISEND(Isend) ISEND(Ibsend) ISEND(Issend) ISEND(Irsend)

TRACED(Sendrecv,
       (const void *data, int count, MPI_Datatype type, int peer, int tag, void *to, int room, MPI_Datatype to_type,
        int from, int from_tag, MPI_Comm comm, MPI_Status *status),
       (data, count, type, peer, tag, to, room, to_type, from, from_tag, comm, status),
       counters_sent(comm, peer, count, type))
TRACED(Sendrecv_replace,
       (void *data, int count, MPI_Datatype type, int peer, int tag, int from, int from_tag, MPI_Comm comm,
        MPI_Status *status),
       (data, count, type, peer, tag, from, from_tag, comm, status), counters_sent(comm, peer, count, type))

#define SEND_INIT(name)                                                                                       \
  static int (*next_##name)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) SIDE_BY_SIDE; \
  __attribute__((constructor)) static void find_##name(void) {                                                \
    *(void **)&next_##name = dlsym(RTLD_NEXT, "PMPI_" #name);                                                 \
  }                                                                                                           \
  EXPORTED int MPI_##name(const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,   \
                          MPI_Request *request) {                                                             \
    const int code = next_##name(data, count, type, peer, tag, comm, request);                                \
    if (code == MPI_SUCCESS) {                                                                                \
      counters_prepared(*request, comm, peer, count, type);                                                   \
    }                                                                                                         \
    return code;                                                                                              \
  }                                                                                                           \
  EXPORTED int PMPI_##name(const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,  \
                           MPI_Request *request) __attribute__((alias("MPI_" #name)));
SEND_INIT(Send_init) SEND_INIT(Bsend_init) SEND_INIT(Ssend_init) SEND_INIT(Rsend_init)

static void started_all(int count, const MPI_Request requests[]) {
  for (int i = 0; i < count; ++i) {
    counters_started(requests[i]);
  }
}
TRACED(Start, (MPI_Request * request), (request), counters_started(*request))
TRACED(Startall, (int count, MPI_Request requests[]), (count, requests), started_all(count, requests))
TRACED(Request_free, (MPI_Request * request), (request), counters_freed(*request))

/* ---- collective operations; those with I do the same later */

#define COUNTED(comm, call)                      \
  counted_comm counted;                          \
  if (counters_collective((comm), &counted)) {   \
    const traffic_caller *const caller = &counted.caller; \
    call;                                        \
  }

static uint64_t *blocks_of(const traffic_caller *caller, const int counts[], MPI_Datatype type) {
  uint64_t *const blocks = malloc(sizeof *blocks * (size_t)caller->size);
  const uint64_t size = bytes_of(1, type);
  for (int i = 0; blocks != NULL && i < caller->size; ++i) {
    blocks[i] = (uint64_t)counts[i] * size;
  }
  return blocks;
}

#define WITH_BLOCKS(counts, type, call)                                \
  uint64_t *const blocks = blocks_of(caller, counts, type);            \
  if (blocks != NULL) {                                                \
    call;                                                              \
    free(blocks);                                                      \
  }

static void count_alltoallw(const traffic_caller *caller, const int counts[], const MPI_Datatype types[]) {
  WITH_BLOCKS(counts, MPI_BYTE, {
    for (int i = 0; i < caller->size; ++i) {
      blocks[i] = bytes_of(counts[i], types[i]);
    }
    traffic_alltoallv(caller, blocks);
  })
}

static void count_alltoallv(const traffic_caller *caller, const int counts[], MPI_Datatype type) {
  WITH_BLOCKS(counts, type, traffic_alltoallv(caller, blocks))
}

static void count_allgatherv(const traffic_caller *caller, const int counts[], MPI_Datatype type) {
  WITH_BLOCKS(counts, type, traffic_allgatherv(caller, blocks))
}

static void count_reduce_scatter(const traffic_caller *caller, const int counts[], MPI_Datatype type) {
  WITH_BLOCKS(counts, type, traffic_reduce_scatter(caller, blocks))
}

static void count_scatterv(const traffic_caller *caller, const int counts[], MPI_Datatype type, int root) {
  if (caller->rank == root) {
    WITH_BLOCKS(counts, type, traffic_scatterv(caller, root, blocks))
  }
}

#define COLLECTIVE(name, inner, parameters, arguments, call) \
  TRACED_BOTH(name, I##inner, parameters, arguments, COUNTED(comm, call))

TRACED(Barrier, (MPI_Comm comm), (comm), COUNTED(comm, traffic_barrier(caller)))
TRACED(Ibarrier, (MPI_Comm comm, MPI_Request *request), (comm, request), COUNTED(comm, traffic_barrier(caller)))
COLLECTIVE(Bcast, bcast, (void *data, int count, MPI_Datatype type, int root, MPI_Comm comm),
           (data, count, type, root, comm), traffic_bcast(caller, root, bytes_of(count, type)))
COLLECTIVE(Reduce, reduce,
           (const void *data, void *to, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
           (data, to, count, type, op, root, comm), traffic_reduce(caller, root, bytes_of(count, type)))
COLLECTIVE(Allreduce, allreduce,
           (const void *data, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (data, to, count, type, op, comm), traffic_allreduce(caller, bytes_of(count, type)))
COLLECTIVE(Scan, scan, (const void *data, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (data, to, count, type, op, comm), traffic_scan(caller, bytes_of(count, type)))
COLLECTIVE(Exscan, exscan, (const void *data, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (data, to, count, type, op, comm), traffic_scan(caller, bytes_of(count, type)))
COLLECTIVE(Gather, gather,
           (const void *data, int count, MPI_Datatype type, void *to, int room, MPI_Datatype to_type, int root,
            MPI_Comm comm),
           (data, count, type, to, room, to_type, root, comm), traffic_gather(caller, root, bytes_of(count, type)))
COLLECTIVE(Gatherv, gatherv,
           (const void *data, int count, MPI_Datatype type, void *to, const int rooms[], const int places[],
            MPI_Datatype to_type, int root, MPI_Comm comm),
           (data, count, type, to, rooms, places, to_type, root, comm),
           traffic_gatherv(caller, root, bytes_of(count, type)))
COLLECTIVE(Scatter, scatter,
           (const void *data, int count, MPI_Datatype type, void *to, int room, MPI_Datatype to_type, int root,
            MPI_Comm comm),
           (data, count, type, to, room, to_type, root, comm),
           traffic_scatter(caller, root, caller->rank == root ? bytes_of(count, type) : bytes_of(room, to_type)))
COLLECTIVE(Scatterv, scatterv,
           (const void *data, const int counts[], const int places[], MPI_Datatype type, void *to, int room,
            MPI_Datatype to_type, int root, MPI_Comm comm),
           (data, counts, places, type, to, room, to_type, root, comm), count_scatterv(caller, counts, type, root))
COLLECTIVE(Allgather, allgather,
           (const void *data, int count, MPI_Datatype type, void *to, int room, MPI_Datatype to_type, MPI_Comm comm),
           (data, count, type, to, room, to_type, comm), traffic_allgather(caller, bytes_of(room, to_type)))
COLLECTIVE(Allgatherv, allgatherv,
           (const void *data, int count, MPI_Datatype type, void *to, const int rooms[], const int places[],
            MPI_Datatype to_type, MPI_Comm comm),
           (data, count, type, to, rooms, places, to_type, comm), count_allgatherv(caller, rooms, to_type))
COLLECTIVE(Alltoall, alltoall,
           (const void *data, int count, MPI_Datatype type, void *to, int room, MPI_Datatype to_type, MPI_Comm comm),
           (data, count, type, to, room, to_type, comm), traffic_alltoall(caller, bytes_of(room, to_type)))
COLLECTIVE(Alltoallv, alltoallv,
           (const void *data, const int counts[], const int places[], MPI_Datatype type, void *to, const int rooms[],
            const int to_places[], MPI_Datatype to_type, MPI_Comm comm),
           (data, counts, places, type, to, rooms, to_places, to_type, comm),
           data == MPI_IN_PLACE ? count_alltoallv(caller, rooms, to_type) : count_alltoallv(caller, counts, type))
COLLECTIVE(Alltoallw, alltoallw,
           (const void *data, const int counts[], const int places[], const MPI_Datatype types[], void *to,
            const int rooms[], const int to_places[], const MPI_Datatype to_types[], MPI_Comm comm),
           (data, counts, places, types, to, rooms, to_places, to_types, comm),
           data == MPI_IN_PLACE ? count_alltoallw(caller, rooms, to_types) : count_alltoallw(caller, counts, types))
COLLECTIVE(Reduce_scatter, reduce_scatter,
           (const void *data, void *to, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (data, to, counts, type, op, comm), count_reduce_scatter(caller, counts, type))
COLLECTIVE(Reduce_scatter_block, reduce_scatter_block,
           (const void *data, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (data, to, count, type, op, comm), traffic_reduce_scatter_block(caller, bytes_of(count, type)))
