// SPDX-License-Identifier: Apache-2.0
// A plain MPI program: each rank adds its number to a token that goes once around, from the last rank on: over sites
// behind firewalls from outside to inside first.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, length, token = 0;
  char host[MPI_MAX_PROCESSOR_NAME];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Get_processor_name(host, &length);
  const int before = (rank + size - 1) % size, last = size - 1;
  if (rank != last) {
    MPI_Recv(&token, 1, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  token += rank;
  printf("rank %d of %d on %s: token %d\n", rank, size, host, token);
  fflush(stdout);
  MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
  if (rank == last) {
    MPI_Recv(&token, 1, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("the token is back at rank %d: %d, expected %d\n", rank, token, size * (size - 1) / 2);
  }
  MPI_Finalize();
  return 0;
}
