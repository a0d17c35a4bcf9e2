/* SPDX-License-Identifier: Apache-2.0
 * traffic MODE: known messages for those who count them.
 *   p2p          every way to send, also in communicators whose ranks are others than the world's
 *   persistent   from each rank to the next 3 messages of 80 bytes, by one request
 *   collectives  every collective operation, of few bytes and of many
 *   one OP N     one operation (bcast, reduce, ...) of N doubles
 *   onesided     from each rank 80 bytes put to the next, and 160 fetched from it
 *   neighbours   on a ring (cartesian) 8 bytes to the last and the next, then (graph) 16 to the next and 24 to the one after
 *   late         nothing within the first second, then many; MPI_Pcontrol(1) between them
 *   pause        what only MPI_Pcontrol's iterations and pauses leave: one message of 8 bytes from each rank to the next */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 20000 };
static double from[16 * MANY], to[16 * MANY];
static int rank, size;

static void ways_to_send(MPI_Comm comm, int count) {
  int self, all;
  MPI_Request requests[2];
  MPI_Comm_rank(comm, &self);
  MPI_Comm_size(comm, &all);
  const int next = (self + 1) % all, last = (self + all - 1) % all;
  for (int i = 0; i < 4; ++i) {
    MPI_Irecv(to, count, MPI_DOUBLE, last, i, comm, &requests[0]);
    if (i == 0) {
      MPI_Send(from, count, MPI_DOUBLE, next, i, comm);
    } else if (i == 1) {
      MPI_Ssend(from, count, MPI_DOUBLE, next, i, comm);
    } else if (i == 2) {
      MPI_Isend(from, count, MPI_DOUBLE, next, i, comm, &requests[1]);
      MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    } else {
      MPI_Issend(from, count, MPI_DOUBLE, next, i, comm, &requests[1]);
      MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    }
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  }
  MPI_Sendrecv(from, count, MPI_DOUBLE, last, 5, to, count, MPI_DOUBLE, next, 5, comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv_replace(to, count, MPI_DOUBLE, next, 6, last, 6, comm, MPI_STATUS_IGNORE);
  MPI_Send(from, count, MPI_DOUBLE, MPI_PROC_NULL, 8, comm);
}

static void p2p(void) {
  ways_to_send(MPI_COMM_WORLD, 1);
  ways_to_send(MPI_COMM_WORLD, MANY);
  MPI_Comm reversed;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &reversed);
  ways_to_send(reversed, 10);
  MPI_Comm_free(&reversed);
  MPI_Comm_split(MPI_COMM_WORLD, 0, (rank + 2) % size, &reversed); /* perhaps under the freed one's handle */
  ways_to_send(reversed, 100);
  MPI_Comm_free(&reversed);
}

static void persistent(void) {
  MPI_Request requests[2];
  MPI_Status statuses[2];
  MPI_Send_init(from, 10, MPI_DOUBLE, (rank + 1) % size, 7, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(to, 10, MPI_DOUBLE, (rank + size - 1) % size, 7, MPI_COMM_WORLD, &requests[1]);
  for (int i = 0; i < 3; ++i) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, statuses);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

static const char *const operations[] = {"bcast",     "reduce",     "allreduce", "gather",    "gatherv",        "scatter",
                                         "scatterv",  "allgather",  "allgatherv", "alltoall", "alltoallv",      "reduce_scatter",
                                         "reduce_scatter_block",    "scan",      "exscan",    "barrier"};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

static void one_of(int operation, int count) {
  int counts[16], places[16];
  for (int i = 0; i < size; ++i) {
    counts[i] = count;
    places[i] = i * count;
  }
  MPI_Comm const world = MPI_COMM_WORLD;
  MPI_Datatype const type = MPI_DOUBLE;
  switch (operation) {
    case 0: MPI_Bcast(from, count, type, 1, world); break;
    case 1: MPI_Reduce(from, to, count, type, MPI_SUM, 0, world); break;
    case 2: MPI_Allreduce(from, to, count, type, MPI_SUM, world); break;
    case 3: MPI_Gather(from, count, type, to, count, type, 0, world); break;
    case 4: MPI_Gatherv(from, count, type, to, counts, places, type, 0, world); break;
    case 5: MPI_Scatter(from, count, type, to, count, type, 1, world); break;
    case 6: MPI_Scatterv(from, counts, places, type, to, count, type, 1, world); break;
    case 7: MPI_Allgather(from, count, type, to, count, type, world); break;
    case 8: MPI_Allgatherv(from, count, type, to, counts, places, type, world); break;
    case 9: MPI_Alltoall(from, count, type, to, count, type, world); break;
    case 10: MPI_Alltoallv(from, counts, places, type, to, counts, places, type, world); break;
    case 11: MPI_Reduce_scatter(from, to, counts, type, MPI_SUM, world); break;
    case 12: MPI_Reduce_scatter_block(from, to, count, type, MPI_SUM, world); break;
    case 13: MPI_Scan(from, to, count, type, MPI_SUM, world); break;
    case 14: MPI_Exscan(from, to, count, type, MPI_SUM, world); break;
    case 15: MPI_Barrier(world); break;
    default: MPI_Abort(world, 64);
  }
}

static void all_of(int count) {
  for (int i = 0; i < OPERATIONS; ++i) {
    one_of(i, count);
  }
}

/* "bcast" "64" */
static void named(const char *name, const char *doubles) {
  int i = 0;
  while (i < OPERATIONS && strcmp(operations[i], name) != 0) {
    ++i;
  }
  const int count = atoi(doubles);
  one_of(count >= 0 && count <= MANY ? i : OPERATIONS, count);
}

static void pause_and_go(void) {
  MPI_Pcontrol(0);
  ways_to_send(MPI_COMM_WORLD, 10);
  MPI_Pcontrol(1);
  MPI_Sendrecv(from, 1, MPI_DOUBLE, (rank + 1) % size, 0, to, 1, MPI_DOUBLE, (rank + size - 1) % size, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Pcontrol(2);
  ways_to_send(MPI_COMM_WORLD, 10); /* beyond the one iteration that is wanted */
}

static void onesided(void) {
  MPI_Win window;
  const int next = (rank + 1) % size;
  MPI_Win_create(to, sizeof to, sizeof to[0], MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  MPI_Put(from, 10, MPI_DOUBLE, next, 0, 10, MPI_DOUBLE, window);
  MPI_Win_fence(0, window);
  MPI_Get(from, 20, MPI_DOUBLE, next, 0, 20, MPI_DOUBLE, window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
}

static void neighbours(void) {
  const int periodic = 1, next[2] = {(rank + 1) % size, (rank + 2) % size};
  const int last[2] = {(rank + size - 1) % size, (rank + size - 2) % size};
  const int counts[2] = {2, 3}, places[2] = {0, 2}, weights[2] = {1, 1};
  MPI_Comm comm;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &comm);
  MPI_Neighbor_alltoall(from, 1, MPI_DOUBLE, to, 1, MPI_DOUBLE, comm);
  MPI_Comm_free(&comm);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, last, weights, 2, next, weights, MPI_INFO_NULL, 0, &comm);
  MPI_Neighbor_alltoallv(from, counts, places, MPI_DOUBLE, to, counts, places, MPI_DOUBLE, comm);
  MPI_Comm_free(&comm);
}

static void late(void) {
  sleep(1);
  ways_to_send(MPI_COMM_WORLD, 10);
  MPI_Pcontrol(1);
  ways_to_send(MPI_COMM_WORLD, 10);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char *const what = argc > 1 ? argv[1] : "";
  if (size > 16) {
    MPI_Abort(MPI_COMM_WORLD, 64);
  }
  if (strcmp(what, "p2p") == 0) {
    p2p();
  } else if (strcmp(what, "persistent") == 0) {
    persistent();
  } else if (strcmp(what, "collectives") == 0) {
    all_of(4);
    all_of(MANY);
  } else if (strcmp(what, "one") == 0 && argc == 4) {
    named(argv[2], argv[3]);
  } else if (strcmp(what, "pause") == 0) {
    pause_and_go();
  } else if (strcmp(what, "onesided") == 0) {
    onesided();
  } else if (strcmp(what, "neighbours") == 0) {
    neighbours();
  } else if (strcmp(what, "late") == 0) {
    late();
  } else {
    MPI_Abort(MPI_COMM_WORLD, 64);
  }
  MPI_Finalize();
  return 0;
}
