/* SPDX-License-Identifier: Apache-2.0
 * Every rank meets every other, the last ones first: over sites behind firewalls, outside sends to inside first.
 *
 *   meet            prints a line a rank
 *   meet die R      rank R kills itself once all have met, the others wait for it
 *   meet exit R C   rank R exits with C
 *   meet abort R C  rank R calls MPI_Abort with C, the others wait for it
 *   meet wait       all wait, for who kills them from outside
 *   meet echo       rank 0 prints what it reads
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kLarge = 1 << 18 };
static char large[kLarge];
static char other[kLarge];

static void Greet(int rank, int size) {
  char word[64] = "hello";
  /* The last rank speaks first, to the first: from another site to one that has said nothing yet. */
  if (rank == size - 1 && size > 1) {
    MPI_Send(word, sizeof word, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
  } else if (rank == 0 && size > 1) {
    MPI_Recv(word, sizeof word, MPI_CHAR, size - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  for (int peer = size - 1; peer >= 0; --peer) {
    if (peer != rank) {
      memset(large, rank + 1, sizeof large);
      MPI_Sendrecv(large, kLarge, MPI_CHAR, peer, 2, other, kLarge, MPI_CHAR, peer, 2, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
      if (other[0] != peer + 1 || other[kLarge - 1] != peer + 1) {
        printf("rank %d got wrong bytes of rank %d\n", rank, peer);
        MPI_Abort(MPI_COMM_WORLD, 9);
      }
    }
  }
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  char host[64] = "";
  int rank = 0;
  int size = 0;
  int sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  gethostname(host, sizeof host);
  Greet(rank, size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d of %d on %s, sum %d\n", rank, size, host, sum);
  fflush(stdout);
  if (strcmp(mode, "die") == 0 && rank == atoi(argv[2])) {
    kill(getpid(), SIGKILL);
  } else if (strcmp(mode, "exit") == 0 && rank == atoi(argv[2])) {
    exit(atoi(argv[3]));
  } else if (strcmp(mode, "abort") == 0 && rank == atoi(argv[2])) {
    MPI_Abort(MPI_COMM_WORLD, atoi(argv[3]));
  } else if (strcmp(mode, "wait") == 0 || strcmp(mode, "die") == 0 || strcmp(mode, "exit") == 0 ||
             strcmp(mode, "abort") == 0) {
    for (;;) {
      pause();
    }
  } else if (strcmp(mode, "echo") == 0 && rank == 0) {
    char line[256];
    while (fgets(line, sizeof line, stdin) != NULL) {
      printf("read %s", line);
    }
  }
  MPI_Finalize();
  return 0;
}
