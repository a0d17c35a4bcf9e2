/* SPDX-License-Identifier: Apache-2.0
 * sends [BATCHES]: how long MPI_Send of 64 bytes to a rank of the same host takes; prints the quickest batch's
 * nanoseconds a message, and the median batch's. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGES = 2000 };

static int by_size(const void *a, const void *b) {
  return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  char bytes[64] = {0};
  const int batches = argc > 1 ? atoi(argv[1]) : 300;
  double *const times = malloc(sizeof *times * (size_t)batches);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int batch = 0; batch < batches; ++batch) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    for (int i = 0; i < MESSAGES; ++i) {
      if (rank == 0) {
        MPI_Send(bytes, sizeof bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      } else {
        MPI_Recv(bytes, sizeof bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
    }
    times[batch] = (MPI_Wtime() - began) / MESSAGES * 1e9;
  }
  if (rank == 0) {
    qsort(times, (size_t)batches, sizeof *times, by_size);
    printf("%.2f %.2f\n", times[0], times[batches / 2]);
  }
  free(times);
  MPI_Finalize();
  return 0;
}
