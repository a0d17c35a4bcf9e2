/* SPDX-License-Identifier: Apache-2.0
 * Half of the ranks leave what they send to MPI_Finalize.
 *
 *   late FILE BYTES MESSAGES [met]   ranks of the upper half send their partners in the lower half MESSAGES of BYTES each, say so and go to
 *                                    MPI_Finalize; the partners receive once FILE is there. met: they have spoken to each other before
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Message i is of bytes that no other of the next 250 is of. */
static int ByteOf(int message) { return message % 251; }

static int IsRight(const char* data, size_t bytes, int message) {
  return data[0] == (char)ByteOf(message) && memcmp(data, data + 1, bytes - 1) == 0;
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int half = ranks / 2;
  const int partner = rank < half ? rank + half : rank - half;
  const size_t bytes = argc > 3 ? (size_t)atol(argv[2]) : 0;
  const int messages = argc > 3 ? atoi(argv[3]) : 0;
  char* const data = malloc(bytes * (size_t)messages);
  if (bytes == 0 || messages < 1 || data == NULL || ranks % 2 != 0) {
    fprintf(stderr, "usage: late FILE BYTES MESSAGES [met]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (argc > 4) {
    int mine = rank, theirs;
    MPI_Sendrecv(&mine, 1, MPI_INT, partner, 1, &theirs, 1, MPI_INT, partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (rank >= half) {
    for (int i = 0; i < messages; ++i) {
      MPI_Request request;
      char* const message = memset(data + bytes * (size_t)i, ByteOf(i), bytes);
      MPI_Isend(message, (int)bytes, MPI_BYTE, partner, 0, MPI_COMM_WORLD, &request);
      MPI_Request_free(&request);
    }
    printf("rank %d leaves %zu bytes to MPI_Finalize\n", rank, bytes * (size_t)messages);
    fflush(stdout);
  } else {
    int right = 0;
    while (access(argv[1], F_OK) != 0) {
      usleep(20000);
    }
    for (int i = 0; i < messages; ++i) {
      MPI_Recv(data, (int)bytes, MPI_BYTE, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      right += IsRight(data, bytes, i);
    }
    printf("rank %d: %d of %d messages\n", rank, right, messages);
  }
  MPI_Finalize();
  return 0;
}
