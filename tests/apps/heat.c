/* SPDX-License-Identifier: Apache-2.0
 * Heat spreading over a plate, row blocks over the ranks; the result is compared with the serial one bit for bit.
 *
 *   heat [side=N] [steps=T]
 *
 * Each step the higher rank of two neighbours sends first: over sites behind firewalls from outside to inside.
 * Exits 1 if a single bit differs.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int side = 96;
static int steps = 200;

static double* Plate(int rows) {
  double* const plate = calloc((size_t)(rows + 2) * (size_t)side, sizeof *plate);
  if (plate == NULL) {
    fprintf(stderr, "heat: no memory\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return plate;
}

/* Rows `first`.. of the plate, with a row above and one below them. */
static void Warm(double* plate, int first, int rows) {
  for (int row = 0; row < rows + 2; ++row) {
    for (int column = 0; column < side; ++column) {
      const int at = first + row;
      plate[row * side + column] = at == 0 ? 100.0 : (double)((at * 7919 + column * 104729) % 1000) / 10.0;
    }
  }
}

static void Step(const double* from, double* to, int rows) {
  for (int row = 1; row <= rows; ++row) {
    const double* const here = from + row * side;
    to[row * side] = here[0];
    to[row * side + side - 1] = here[side - 1];
    for (int column = 1; column < side - 1; ++column) {
      const double around = here[column - 1] + here[column + 1] + here[column - side] + here[column + side];
      to[row * side + column] = here[column] + 0.2 * (around - 4.0 * here[column]);
    }
  }
  memcpy(to, from, (size_t)side * sizeof *to);
  memcpy(to + (rows + 1) * side, from + (rows + 1) * side, (size_t)side * sizeof *to);
}

static void Meet(double* plate, int rows, int rank, int ranks) {
  const int above = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int below = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
  MPI_Request up;
  MPI_Isend(plate + side, side, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, &up);
  MPI_Recv(plate + (rows + 1) * side, side, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(plate + rows * side, side, MPI_DOUBLE, below, 2, plate, side, MPI_DOUBLE, above, 2, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Wait(&up, MPI_STATUS_IGNORE);
}

/* The plate after all steps: here[0] */
static void Run(double* here[2], int rows, int rank, int ranks) {
  for (int step = 0; step < steps; ++step) {
    if (ranks > 1) {
      Meet(here[0], rows, rank, ranks);
    }
    Step(here[0], here[1], rows);
    double* const swapped = here[0];
    here[0] = here[1];
    here[1] = swapped;
  }
}

static int FirstRow(int rank, int ranks) { return (int)((long)side * rank / ranks); }

static int IsAsSerial(const double* whole) {
  double* serial[2] = {Plate(side), Plate(side)};
  Warm(serial[0], 0, side);
  Run(serial, side, 0, 1);
  const int is_same = memcmp(serial[0] + side, whole, (size_t)side * (size_t)side * sizeof *whole) == 0;
  free(serial[0]);
  free(serial[1]);
  return is_same;
}

int main(int argc, char** argv) {
  int rank = 0;
  int ranks = 0;
  int is_same = 1;
  char host[64] = "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 1; i < argc; ++i) {
    if (!sscanf(argv[i], "side=%d", &side) && !sscanf(argv[i], "steps=%d", &steps)) {
      fprintf(stderr, "heat: what is \"%s\"?\n", argv[i]);
      MPI_Abort(MPI_COMM_WORLD, 64);
    }
  }
  if (side < 3 || side < ranks || side > 10000) {
    fprintf(stderr, "heat: side must be 3 to 10000, and not less than the ranks\n");
    MPI_Abort(MPI_COMM_WORLD, 64);
  }
  const int first = FirstRow(rank, ranks);
  const int rows = FirstRow(rank + 1, ranks) - first;
  double* here[2] = {Plate(rows), Plate(rows)};
  Warm(here[0], first, rows);
  Run(here, rows, rank, ranks);

  int* const counts = calloc((size_t)ranks, sizeof *counts);
  int* const places = calloc((size_t)ranks, sizeof *places);
  double* const whole = rank == 0 ? Plate(side) : NULL;
  for (int each = 0; each < ranks; ++each) {
    places[each] = FirstRow(each, ranks) * side;
    counts[each] = FirstRow(each + 1, ranks) * side - places[each];
  }
  MPI_Gatherv(here[0] + side, rows * side, MPI_DOUBLE, whole, counts, places, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  gethostname(host, sizeof host - 1);
  printf("rank %d of %d on %s: rows %d to %d\n", rank, ranks, host, first, first + rows - 1);
  fflush(stdout);
  if (rank == 0) {
    is_same = IsAsSerial(whole);
    printf("%s\n", is_same ? "the same bit for bit as alone" : "NOT the same as alone");
  }
  MPI_Bcast(&is_same, 1, MPI_INT, 0, MPI_COMM_WORLD);
  free(here[0]);
  free(here[1]);
  free(whole);
  free(counts);
  free(places);
  MPI_Finalize();
  return is_same ? 0 : 1;
}
