/* SPDX-License-Identifier: Apache-2.0
 * tracer_cost sends|stencil [ROUNDS]: what a library that is loaded before MPI adds, both ways in one run, so that what else the machine
 * does falls on both: calls as the program makes them, and calls straight to MPI, in turns.
 *
 *   sends     2 ranks: prints ns a message of 64 bytes straight to MPI, and ns added.  Of each way the quickest twentieth of its rounds
 *             counts: what was not disturbed
 *   stencil   4 ranks, 2 x 2 blocks of 256 x 256 with an edge exchanged each step and a sum each 20th: prints us of processor a step
 *             without its waits, which are as long either way and on a busy machine most of it, % added, and by how many % that may be
 *             off: a step each way is a pair, what is added is the median of all ranks' pairs, and that is off by no more in 19 of 20 runs
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIDE = 256, MESSAGES = 200 };

typedef struct {
  int (*Send)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
  int (*Isend)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  int (*Iallreduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*);
} calls;

static const calls as_written = {MPI_Send, MPI_Isend, MPI_Iallreduce};
static calls straight;
static int rank;

static void* Found(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (found == NULL) {
    fprintf(stderr, "tracer_cost: no %s in MPI's library\n", name);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return found;
}

static void FindMpi(void) {
  Dl_info info;
  void* library = NULL;
  if (dladdr(dlsym(RTLD_DEFAULT, "MPI_Get_library_version"), &info) != 0) { /* which nobody replaces */
    library = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_NOW);
  }
  *(void**)&straight.Send = Found(library, "MPI_Send");
  *(void**)&straight.Isend = Found(library, "MPI_Isend");
  *(void**)&straight.Iallreduce = Found(library, "MPI_Iallreduce");
}

static double Sends(const calls* mpi, int round) {
  char bytes[64] = {0};
  (void)round;
  MPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  for (int i = 0; i < MESSAGES; ++i) {
    if (rank == 0) {
      mpi->Send(bytes, sizeof bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else {
      MPI_Recv(bytes, sizeof bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  return (MPI_Wtime() - began) / MESSAGES;
}

static double plates[2][SIDE + 2][SIDE + 2];
static double edges[4][SIDE], seen[4][SIDE];

static double Processor(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Seconds of processor without the waits. */
static double Step(const calls* mpi, int step) {
  double(*const from)[SIDE + 2] = plates[step % 2];
  double(*const to)[SIDE + 2] = plates[(step + 1) % 2];
  const int peers[2] = {rank ^ 1, rank ^ 2};
  MPI_Request requests[8], sum = MPI_REQUEST_NULL;
  MPI_Status statuses[8];
  double took = -Processor();
  for (int i = 0; i < SIDE; ++i) {
    edges[0][i] = from[i + 1][1], edges[1][i] = from[1][i + 1], edges[2][i] = from[i + 1][SIDE], edges[3][i] = from[SIDE][i + 1];
  }
  for (int i = 0; i < 4; ++i) {
    MPI_Irecv(seen[i], SIDE, MPI_DOUBLE, peers[i % 2], i, MPI_COMM_WORLD, &requests[i]);
    mpi->Isend(edges[i], SIDE, MPI_DOUBLE, peers[i % 2], i, MPI_COMM_WORLD, &requests[4 + i]);
  }
  took += Processor();
  MPI_Waitall(8, requests, statuses);
  took -= Processor();
  double change = 0, all;
  for (int i = 0; i < SIDE; ++i) {
    from[i + 1][SIDE + 1] = seen[0][i], from[SIDE + 1][i + 1] = seen[1][i], from[i + 1][0] = seen[2][i], from[0][i + 1] = seen[3][i];
  }
  for (int y = 1; y <= SIDE; ++y) {
    for (int x = 1; x <= SIDE; ++x) {
      to[y][x] = from[y][x] + 0.2 * (from[y][x - 1] + from[y][x + 1] + from[y - 1][x] + from[y + 1][x] - 4 * from[y][x]);
      change += to[y][x] - from[y][x];
    }
  }
  if (step % 20 == 0) {
    mpi->Iallreduce(&change, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &sum);
  }
  took += Processor();
  MPI_Wait(&sum, MPI_STATUS_IGNORE);
  return took;
}

static int BySize(const void* a, const void* b) {
  return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b);
}

static void PrintSends(double* written, double* plain, int rounds) {
  qsort(written, (size_t)rounds, sizeof(double), BySize);
  qsort(plain, (size_t)rounds, sizeof(double), BySize);
  printf("%.2f %.2f\n", plain[rounds / 20] * 1e9, (written[rounds / 20] - plain[rounds / 20]) * 1e9);
}

/* Of all ranks, on the first. */
static double* Gathered(const double* own, int count, int ranks) {
  double* const all = malloc(sizeof(double) * (size_t)(count * ranks));
  MPI_Gather(own, count, MPI_DOUBLE, all, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  qsort(all, rank == 0 ? (size_t)(count * ranks) : 0, sizeof(double), BySize);
  return all;
}

static void PrintSteps(const double* written, const double* plain, int rounds) {
  int ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  double* const added = malloc(sizeof(double) * (size_t)rounds);
  for (int i = 0; i < rounds; ++i) {
    added[i] = written[i] - plain[i];
  }
  const double* const steps = Gathered(plain, rounds, ranks);
  const double* const pairs = Gathered(added, rounds, ranks);
  if (rank == 0) {
    const int all = rounds * ranks;
    int apart = 0; /* of a median's rank in 19 of 20 samples: the square root of their number */
    while (apart * apart < all) {
      ++apart;
    }
    const double step = steps[all / 2];
    const double off = (pairs[all / 2 + apart] - pairs[all / 2 - apart]) / 2;
    printf("%.3f %.4f %.4f\n", step * 1e6, 100 * pairs[all / 2] / step, 100 * off / step);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int is_stencil = argc > 1 && strcmp(argv[1], "stencil") == 0;
  const int rounds = argc > 2 ? atoi(argv[2]) : 4000;
  double* const times[2] = {malloc(sizeof(double) * (size_t)rounds), malloc(sizeof(double) * (size_t)rounds)};
  FindMpi();
  for (int x = 0; x < SIDE; ++x) {
    plates[0][x][x] = (double)((x * 7919 + rank) % 1000);
  }
  for (int round = 0; round < rounds; ++round) {
    for (int turn = 0; turn < 2; ++turn) { /* each is first as often */
      const int is_straight = (round + turn) % 2;
      times[is_straight][round] = (is_stencil ? Step : Sends)(is_straight ? &straight : &as_written, round);
    }
  }
  if (is_stencil) {
    PrintSteps(times[0], times[1], rounds);
  } else if (rank == 0) {
    PrintSends(times[0], times[1], rounds);
  }
  MPI_Finalize();
  return 0;
}
