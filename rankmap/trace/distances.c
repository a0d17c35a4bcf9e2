/* SPDX-License-Identifier: Apache-2.0 */
#include "rankmap/trace/distances.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include <mpi.h>

#include "rankmap/trace/report.h"

enum { kTag = 1, kTimesLeast = 5, kTimesMost = 10000 };
static const double kSeconds = 1, kSecondsMost = 0.2; /* of all pairs of a node, of one: on a busy machine few round trips say little */

/* MPICH waits spinning.  Where there are more ranks than processors, a rank that waits so keeps its peer from running,
   and a node looks as wide as the way to another site: who measures gives way, who has measured sleeps. */
static void receive(void* word, int size, int peer, MPI_Comm comm) {
  MPI_Request request;
  int is_there = 0;
  PMPI_Irecv(word, size, MPI_BYTE, peer, kTag, comm, &request);
  for (;;) {
    PMPI_Test(&request, &is_there, MPI_STATUS_IGNORE);
    if (is_there) {
      return;
    }
    sched_yield();
  }
}

static void wait_for_all(MPI_Comm comm) {
  const struct timespec pause = {0, 200 * 1000};
  MPI_Request request;
  int is_there = 0;
  PMPI_Ibarrier(comm, &request);
  for (;;) {
    PMPI_Test(&request, &is_there, MPI_STATUS_IGNORE);
    if (is_there) {
      return;
    }
    nanosleep(&pause, NULL);
  }
}

/* The least round trip of some, in ns.  Who begins says which is the last. */
static uint64_t round_trip(MPI_Comm comm, int peer, int begins, double seconds) {
  double least = 1e9;
  const double first = PMPI_Wtime();
  char is_last = 0;
  for (int i = 0; !is_last; ++i) { /* 0 connects */
    const double began = PMPI_Wtime();
    if (begins) {
      is_last = i >= kTimesMost || (i >= kTimesLeast && began - first > seconds);
      PMPI_Send(&is_last, 1, MPI_BYTE, peer, kTag, comm);
      receive(NULL, 0, peer, comm);
    } else {
      receive(&is_last, 1, peer, comm);
      PMPI_Send(NULL, 0, MPI_BYTE, peer, kTag, comm);
    }
    const double took = PMPI_Wtime() - began;
    least = i > 0 && took < least ? took : least;
  }
  return (uint64_t)(least * 1e9);
}

/* Each with each, all pairs of a round at once: the circle method of tournaments. */
static void between(MPI_Comm nodes) {
  int self, count;
  PMPI_Comm_rank(nodes, &self);
  PMPI_Comm_size(nodes, &count);
  const int even = count + count % 2, ring = even - 1;
  const double seconds = kSeconds / ring < kSecondsMost ? kSeconds / ring : kSecondsMost;
  for (int round = 0; round < ring; ++round) {
    int peer = self == ring ? round : (2 * round - self + ring) % ring;
    peer = peer == self ? ring : peer; /* who would meet himself meets the last one, if there is one */
    if (peer < count) {
      const uint64_t took = round_trip(nodes, peer, self < peer, seconds);
      if (self < peer) {
        report_line("far", (uint64_t)self, (uint64_t)peer, took, 0);
      }
    }
  }
}

void distances_report(void) {
  MPI_Comm inside, nodes;
  int rank, self, count, node = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &inside);
  PMPI_Comm_rank(inside, &self);
  PMPI_Comm_size(inside, &count);
  PMPI_Comm_split(MPI_COMM_WORLD, self == 0 ? 0 : MPI_UNDEFINED, rank, &nodes);
  if (self == 0) {
    PMPI_Comm_rank(nodes, &node);
  }
  PMPI_Bcast(&node, 1, MPI_INT, 0, inside);
  report_line("node", (uint64_t)rank, (uint64_t)node, 0, 0);
  if (self < 2 && count > 1) {
    const uint64_t took = round_trip(inside, 1 - self, self == 0, kSecondsMost);
    if (self == 0) {
      report_line("far", (uint64_t)node, (uint64_t)node, took, 0);
    }
  }
  if (self == 0) {
    between(nodes);
    PMPI_Comm_free(&nodes);
  }
  PMPI_Comm_free(&inside);
  wait_for_all(MPI_COMM_WORLD); /* nobody's first messages are measured along */
}
