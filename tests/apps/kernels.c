/* SPDX-License-Identifier: Apache-2.0
 * kernels NAME [STEPS]: who talks to whom as in the NAS parallel benchmarks, with little to compute.
 *
 *   lu       wavefronts over a grid of ranks, from one corner and back: many short messages to the next in x and in y
 *   bt       faces with the neighbours in x and y, then sweeps there and back along rows and columns
 *   mg       halos in three dimensions, periodic, at each level of a multigrid
 *   cg       sums over rows of ranks by recursive halving, then with the transposed rank
 *   crossed  each rank with the one half the world away
 *
 * Rank 0 prints "NAME seconds S sum X": X is the same wherever ranks are.  Each rank prints where it is.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT = 40, FACE = 1000, PLANES = 8, LEVELS = 3 };

static int rank, ranks, steps = 20;
static double sum;
static double to[FACE], from[FACE];
/* Ranks row by row; z is 1 but for mg. */
static int wide, high, deep;

static void Divide(int dimensions) {
  int sides[3] = {0, 0, dimensions == 3 ? 0 : 1};
  MPI_Dims_create(ranks, 3, sides); /* the largest first */
  wide = sides[0], high = sides[1], deep = sides[2];
}

static int X(void) { return rank % wide; }
static int Y(void) { return rank / wide % high; }
static int Z(void) { return rank / wide / high; }

/* MPI_PROC_NULL beyond the edge. */
static int At(int x, int y) { return x < 0 || y < 0 || x >= wide || y >= high ? MPI_PROC_NULL : x + wide * y; }
static int Round(int x, int y, int z) {
  return (x + wide) % wide + wide * ((y + high) % high + high * ((z + deep) % deep));
}

static void Fill(int count, int step) {
  for (int i = 0; i < count; ++i) {
    to[i] = (double)((rank * 31 + step * 7 + i) % 101);
  }
}

static void Take(int peer, int count) {
  for (int i = 0; peer != MPI_PROC_NULL && i < count; ++i) {
    sum += from[i] * (double)(i % 3 + 1);
  }
}

static void Exchange(int peer, int source, int count) {
  MPI_Sendrecv(to, count, MPI_DOUBLE, peer, 1, from, count, MPI_DOUBLE, source, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  Take(source, count);
}

static void Pass(int source, int target, int count) {
  MPI_Recv(from, count, MPI_DOUBLE, source, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  Take(source, count);
  MPI_Send(to, count, MPI_DOUBLE, target, 2, MPI_COMM_WORLD);
}

static void Lu(int step) {
  Fill(SHORT, step);
  for (int way = 1; way >= -1; way -= 2) {
    for (int plane = 0; plane < PLANES; ++plane) {
      Pass(At(X() - way, Y()), At(X() + way, Y()), SHORT);
      Pass(At(X(), Y() - way), At(X(), Y() + way), SHORT);
    }
  }
}

static void Bt(int step) {
  Fill(FACE, step);
  for (int way = 1; way >= -1; way -= 2) {
    Exchange(At(X() + way, Y()), At(X() - way, Y()), FACE);
    Exchange(At(X(), Y() + way), At(X(), Y() - way), FACE);
  }
  for (int way = 1; way >= -1; way -= 2) {
    Pass(At(X() - way, Y()), At(X() + way, Y()), SHORT);
  }
  for (int way = 1; way >= -1; way -= 2) {
    Pass(At(X(), Y() - way), At(X(), Y() + way), SHORT);
  }
}

static void Mg(int step) {
  for (int level = 0; level < LEVELS; ++level) {
    const int count = FACE >> (2 * level);
    Fill(count, step + level);
    for (int way = 1; way >= -1; way -= 2) {
      Exchange(Round(X() + way, Y(), Z()), Round(X() - way, Y(), Z()), count);
      Exchange(Round(X(), Y() + way, Z()), Round(X(), Y() - way, Z()), count);
      Exchange(Round(X(), Y(), Z() + way), Round(X(), Y(), Z() - way), count);
    }
  }
}

static void Cg(int step) {
  Fill(FACE, step);
  for (int distance = 1; distance < wide; distance *= 2) {
    const int peer = At(X() ^ distance, Y());
    Exchange(peer, peer, FACE / 4);
  }
  const int half = rank / 2, columns = wide / high; /* 1 or 2, as NPB's */
  const int transposed = columns == 1 ? X() * wide + Y() : 2 * (half % high * high + half / high) + rank % 2;
  Exchange(transposed, transposed, FACE / 4);
}

static void Crossed(int step) {
  Fill(SHORT, step);
  const int peer = (rank + ranks / 2) % ranks;
  Exchange(peer, (rank + ranks - ranks / 2) % ranks, SHORT);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    int dimensions;
    void (*run)(int step);
  } kernels[] = {{"lu", 2, Lu}, {"bt", 2, Bt}, {"mg", 3, Mg}, {"cg", 2, Cg}, {"crossed", 2, Crossed}};
  char host[MPI_MAX_PROCESSOR_NAME];
  int length;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Get_processor_name(host, &length);
  steps = argc > 2 ? atoi(argv[2]) : steps;
  for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; ++i) {
    if (argc < 2 || strcmp(argv[1], kernels[i].name) != 0) {
      continue;
    }
    Divide(kernels[i].dimensions);
    printf("rank %d on %s\n", rank, host);
    fflush(stdout);
    kernels[i].run(0); /* connects */
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    for (int step = 1; step <= steps; ++step) {
      kernels[i].run(step);
      MPI_Pcontrol(2);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double seconds = MPI_Wtime() - began;
    double total = 0;
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
      printf("%s seconds %.6f sum %.17g\n", argv[1], seconds, total);
    }
    MPI_Finalize();
    return 0;
  }
  fprintf(stderr, "usage: kernels lu|bt|mg|cg|crossed [STEPS]\n");
  MPI_Abort(MPI_COMM_WORLD, 64);
}
