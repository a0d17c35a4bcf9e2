/* SPDX-License-Identifier: Apache-2.0
 * The knapsack program of Tanaka et al., chapters 4 and 5, for any number of ranks.
 *
 *   knapsack [items=N] [seed=S] [interval=I] [stealunit=U] [pool=P] [prune=yes|no] [correlated=yes|no]
 *
 * Rank 0 is the master: it branches `interval` times, then looks whether a slave asks for work, and gives it
 * `stealunit` nodes of its stack.  It branches breadth first while it has fewer than `pool` nodes, so that none is much
 * larger than others, then depth first.  A slave branches until its own stack is empty, then asks: over sites behind firewalls the outside
 * sends to the inside first.  The best lower bound known travels with requests and with work, never by itself.
 * What can be done beside the work (receiving requests, sending nodes) is non-blocking.
 *
 * Prints a line a rank, and the result beside that of dynamic programming; exits 1 if they differ.
 */
#include <mpi.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "knapsack.h"

enum { kRequest = 1, kWork = 2, kHead = 2 }; /* of work: the bound, how many nodes; none: there will be no more */

static Problem problem = {.prunes = 1};
static Stack stack;
static int64_t low; /* the best lower bound that this rank knows */
static int items = 32;
static int interval = 100;
static int stealunit = 10;
static int pool = 2000;
static int is_correlated = 1;
static uint64_t seed = 1;

static int64_t branched;
static double asking_s; /* of the master: looking for requests; of a slave: waiting for work */


static void Raise(int64_t bound) { low = bound > low ? bound : low; }

/* One slave as the master sees it. */
typedef struct {
  int64_t* message;
  MPI_Request sending;
} Slave;

static void Give(Slave* slave, int rank, int most) {
  const int count = most < stealunit ? most : stealunit;
  MPI_Wait(&slave->sending, MPI_STATUS_IGNORE); /* what it got before has left: it asks again */
  slave->message[0] = low;
  slave->message[1] = count;
  TakeBottom(&stack, (Node*)(slave->message + kHead), count);
  MPI_Isend(slave->message, kHead + count * kWords, MPI_INT64_T, rank, kWork, MPI_COMM_WORLD, &slave->sending);
}

static void Master(int ranks) {
  Slave* const slaves = calloc((size_t)ranks, sizeof *slaves);
  int64_t bound = 0;
  int working = ranks - 1;
  int is_waiting = 0; /* a request has come and could not be served: there is one node only */
  MPI_Request asked = MPI_REQUEST_NULL;
  MPI_Status status;
  for (int rank = 1; rank < ranks; ++rank) {
    slaves[rank].message = malloc((size_t)(kHead + stealunit * kWords) * sizeof(int64_t));
    slaves[rank].sending = MPI_REQUEST_NULL;
  }
  if (working > 0) {
    MPI_Irecv(&bound, 1, MPI_INT64_T, MPI_ANY_SOURCE, kRequest, MPI_COMM_WORLD, &asked);
  }
  const Node root = {0, 0, problem.capacity};
  Push(&stack, root);
  while (StackSize(&stack) > 0 || working > 0) {
    for (int i = 0; i < interval && StackSize(&stack) > 0; ++i) {
      (StackSize(&stack) < pool ? BranchBottom : Branch)(&problem, &stack, &low);
      ++branched;
    }
    const double began = MPI_Wtime();
    for (int is_asked = 1; working > 0 && is_asked;) {
      if (!is_waiting && StackSize(&stack) > 0) {
        MPI_Test(&asked, &is_asked, &status);
      } else if (!is_waiting) {
        MPI_Wait(&asked, &status);
      }
      if (!is_asked) {
        break;
      }
      is_waiting = StackSize(&stack) == 1;
      if (is_waiting) {
        break;
      }
      Raise(bound);
      const int has_work = StackSize(&stack) > 1;
      Give(&slaves[status.MPI_SOURCE], status.MPI_SOURCE, has_work ? StackSize(&stack) - 1 : 0);
      working -= !has_work;
      if (working > 0) {
        MPI_Irecv(&bound, 1, MPI_INT64_T, MPI_ANY_SOURCE, kRequest, MPI_COMM_WORLD, &asked);
      }
    }
    asking_s += MPI_Wtime() - began;
  }
  for (int rank = 1; rank < ranks; ++rank) {
    MPI_Wait(&slaves[rank].sending, MPI_STATUS_IGNORE);
    free(slaves[rank].message);
  }
  free(slaves);
}

static void Work(void) {
  int64_t* const message = malloc((size_t)(kHead + stealunit * kWords) * sizeof(int64_t));
  for (;;) {
    const double began = MPI_Wtime();
    MPI_Request request;
    MPI_Request work;
    MPI_Irecv(message, kHead + stealunit * kWords, MPI_INT64_T, 0, kWork, MPI_COMM_WORLD, &work);
    MPI_Isend(&low, 1, MPI_INT64_T, 0, kRequest, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Wait(&work, MPI_STATUS_IGNORE);
    asking_s += MPI_Wtime() - began;
    Raise(message[0]);
    if (message[1] == 0) {
      break;
    }
    for (int64_t i = 0; i < message[1]; ++i) {
      Node node;
      memcpy(&node, message + kHead + i * kWords, sizeof node);
      Push(&stack, node);
    }
    while (StackSize(&stack) > 0) {
      Branch(&problem, &stack, &low);
      ++branched;
    }
  }
  free(message);
}

static int ReadOption(const char* word) {
  char text[16] = "";
  if (sscanf(word, "prune=%15s", text) == 1) {
    problem.prunes = strcmp(text, "no") != 0;
    return 1;
  }
  if (sscanf(word, "correlated=%15s", text) == 1) {
    is_correlated = strcmp(text, "no") != 0;
    return 1;
  }
  return sscanf(word, "items=%d", &items) == 1 || sscanf(word, "interval=%d", &interval) == 1 ||
         sscanf(word, "stealunit=%d", &stealunit) == 1 ||
         sscanf(word, "pool=%d", &pool) == 1 || sscanf(word, "seed=%" SCNu64, &seed) == 1;
}

/* On rank 0; whether all is as it must be. */
static int Judge(int64_t best, int64_t nodes, double seconds) {
  const int64_t expected = BestProfit(&problem);
  printf("best %" PRId64 ", by dynamic programming %" PRId64 "\n", best, expected);
  int is_right = best == expected;
  if (!problem.prunes) {
    const int64_t tree = NodesOfTree(&problem);
    printf("branched %" PRId64 ", nodes of the tree %" PRId64 "\n", nodes, tree);
    is_right = is_right && nodes == tree;
  } else {
    printf("branched %" PRId64 "\n", nodes);
  }
  printf("time %.3f s\n%s\n", seconds, is_right ? "right" : "WRONG");
  return is_right;
}

int main(int argc, char** argv) {
  int rank = 0;
  int ranks = 0;
  int is_right = 1;
  char host[64] = "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 1; i < argc; ++i) {
    if (!ReadOption(argv[i]) || items < 1 || items > kItemsMax || interval < 1 || stealunit < 1 || pool < 1) {
      fprintf(stderr, "knapsack: what is \"%s\"?\n", argv[i]);
      MPI_Abort(MPI_COMM_WORLD, 64);
    }
  }
  MakeProblem(&problem, items, seed, is_correlated);
  const double began = MPI_Wtime();
  if (rank == 0) {
    Master(ranks);
  } else {
    Work();
  }
  const double seconds = MPI_Wtime() - began;

  int64_t best = 0;
  int64_t nodes = 0;
  MPI_Reduce(&low, &best, 1, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&branched, &nodes, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  gethostname(host, sizeof host - 1);
  printf("rank %d of %d on %s: branched %" PRId64 ", %.3f s, of it %.3f s %s\n", rank, ranks, host, branched, seconds,
         asking_s, rank == 0 ? "for its slaves" : "waiting for work");
  fflush(stdout);
  if (rank == 0) {
    is_right = Judge(best, nodes, seconds);
  }
  MPI_Bcast(&is_right, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return is_right ? 0 : 1;
}
