/* SPDX-License-Identifier: Apache-2.0
 * Ranks that go on together, a round each time that somebody from outside lets them.
 *
 *   rounds DIRECTORY N    each rank adds a line to DIRECTORY/rank.R when it begins; round I of N begins when DIRECTORY/go.I is there:
 *                         the ranks sum something up, and each prints a line
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[4096];

static void AddLine(const char* directory, int rank) {
  snprintf(path, sizeof path, "%s/rank.%d", directory, rank);
  FILE* file = fopen(path, "a");
  if (file == NULL || fprintf(file, "rank %d\n", rank) < 0 || fclose(file) != 0) {
    perror(path);
    MPI_Abort(MPI_COMM_WORLD, 9);
  }
}

/* Rank 0 looks, all others hear of it: all wait inside MPI. */
static void AwaitRound(const char* directory, int round, int rank) {
  int is_there = 0;
  snprintf(path, sizeof path, "%s/go.%d", directory, round);
  while (!is_there) {
    is_there = rank == 0 && access(path, F_OK) == 0;
    MPI_Bcast(&is_there, 1, MPI_INT, 0, MPI_COMM_WORLD);
    usleep(20000);
  }
}

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 3) {
    fprintf(stderr, "usage: rounds DIRECTORY N\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  AddLine(argv[1], rank);
  for (int round = 0; round < atoi(argv[2]); ++round) {
    AwaitRound(argv[1], round, rank);
    int mine = (round + 1) * (rank + 1);
    int sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("round %d rank %d sum %d\n", round, rank, sum);
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
