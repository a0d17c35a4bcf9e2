/* SPDX-License-Identifier: Apache-2.0
 * late [SECONDS]: ranks of the lower half compute for SECONDS (1) before they receive what their partners in the upper half, who
 * have left it to MPI_Finalize by then, send them: more than sockets hold. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kMessages = 2000, kInts = 2000 };

int main(int argc, char** argv) {
  static int data[kMessages][kInts];
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int half = ranks / 2;
  for (int i = 0; rank >= half && i < kMessages; ++i) {
    MPI_Request request;
    data[i][kInts - 1] = i;
    MPI_Isend(data[i], kInts, MPI_INT, rank - half, 0, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
  }
  if (rank < half) {
    int right = 0;
    sleep(argc > 1 ? (unsigned)atoi(argv[1]) : 1);
    for (int i = 0; i < kMessages; ++i) {
      MPI_Recv(data[i], kInts, MPI_INT, rank + half, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      right += data[i][kInts - 1] == i;
    }
    printf("rank %d: %d of %d messages\n", rank, right, kMessages);
  }
  MPI_Finalize();
  return 0;
}
