/* SPDX-License-Identifier: Apache-2.0
 * measure WHAT [seconds=S] [from=BYTES] [to=BYTES]: figures of an MPI world, lines that tests/bench/mpi/bench reads.
 *
 *   start      "start RANK T0 T1": main's first instruction and MPI_Finalize's end by the kernel's one clock, s
 *   pingpong   rank 0 and the last rank: "pingpong BYTES LATENCY_us MB/s", one way, the median of batches
 *   allreduce  all: "allreduce BYTES us"
 *   alltoall   all: "alltoall BYTES us", BYTES to each
 *
 * Sizes from 8 B to 4 MiB, twice as large each; each gets S seconds (0.05), and one round at least. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kBatches = 64 };

static int rank, ranks;
static double seconds = 0.05;
static int smallest = 8, largest = 4 << 20;

static double Now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int Compare(const void* one, const void* other) {
  const double a = *(const double*)one, b = *(const double*)other;
  return (a > b) - (a < b);
}

static void PingPong(char* buffer, int bytes) {
  const int last = ranks - 1;
  if (rank == 0) {
    MPI_Send(buffer, bytes, MPI_CHAR, last, 1, MPI_COMM_WORLD);
    MPI_Recv(buffer, bytes, MPI_CHAR, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (rank == last) {
    MPI_Recv(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
  }
}

static void Allreduce(char* buffer, int bytes) {
  MPI_Allreduce(MPI_IN_PLACE, buffer, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void Alltoall(char* buffer, int bytes) {
  MPI_Alltoall(buffer, bytes, MPI_CHAR, buffer + (size_t)bytes * (size_t)ranks, bytes, MPI_CHAR, MPI_COMM_WORLD);
}

/* Seconds of one round: the median of batches, each so many rounds that clocks do not matter. */
static double Measure(void (*round)(char*, int), char* buffer, int bytes) {
  double batch[kBatches];
  round(buffer, bytes); /* connections stand, pages are there */
  MPI_Barrier(MPI_COMM_WORLD);
  double began = Now();
  round(buffer, bytes);
  double once = Now() - began;
  MPI_Bcast(&once, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  const int total = once > seconds ? 1 : (int)(seconds / once);
  const int batches = total < kBatches ? total : kBatches;
  const int rounds = total / batches;
  for (int i = 0; i < batches; ++i) {
    began = Now();
    for (int each = 0; each < rounds; ++each) {
      round(buffer, bytes);
    }
    batch[i] = (Now() - began) / rounds;
  }
  qsort(batch, (size_t)batches, sizeof *batch, Compare);
  return batch[batches / 2];
}

int main(int argc, char** argv) {
  const double entered = Now();
  const char* what = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 2; i < argc; ++i) {
    if (sscanf(argv[i], "seconds=%lf", &seconds) != 1 && sscanf(argv[i], "from=%d", &smallest) != 1 &&
        sscanf(argv[i], "to=%d", &largest) != 1) {
      fprintf(stderr, "measure: what is \"%s\"?\n", argv[i]);
      MPI_Abort(MPI_COMM_WORLD, 64);
    }
  }
  if (strcmp(what, "start") == 0) {
    MPI_Finalize();
    printf("start %d %.6f %.6f\n", rank, entered, Now());
    return 0;
  }
  const int is_alltoall = strcmp(what, "alltoall") == 0;
  const int is_allreduce = strcmp(what, "allreduce") == 0;
  char* const buffer = calloc(is_alltoall ? 2 * (size_t)ranks : 1, (size_t)largest);
  if (buffer == NULL || (!is_alltoall && !is_allreduce && strcmp(what, "pingpong") != 0)) {
    fprintf(stderr, "measure: what is \"%s\"?\n", what);
    MPI_Abort(MPI_COMM_WORLD, 64);
  }
  for (int bytes = smallest; bytes <= largest; bytes *= 2) {
    const double once = Measure(is_alltoall ? Alltoall : is_allreduce ? Allreduce : PingPong, buffer, bytes);
    if (rank == 0 && !is_alltoall && !is_allreduce) {
      printf("pingpong %d %.2f %.5g\n", bytes, once / 2 * 1e6, 2 * bytes / once / 1e6);
    } else if (rank == 0) {
      printf("%s %d %.2f\n", what, bytes, once * 1e6);
    }
    fflush(stdout);
  }
  free(buffer);
  MPI_Finalize();
  return 0;
}
