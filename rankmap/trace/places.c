/* SPDX-License-Identifier: Apache-2.0 */
#include "rankmap/trace/places.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Of a group: its ranks' places in MPI_COMM_WORLD. */
typedef struct {
  int size;
  int world[];
} ranks;

static int comm_key = MPI_KEYVAL_INVALID;
static int window_key = MPI_KEYVAL_INVALID;
static atomic_uint freed;                                  /* what is remembered is stale when it has changed */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;   /* two threads may use a communicator first */

static int forget_comm(MPI_Comm comm, int key, void *value, void *extra) {
  (void)comm, (void)key, (void)extra;
  free(value);
  atomic_fetch_add(&freed, 1);
  return MPI_SUCCESS;
}

static int forget_window(MPI_Win window, int key, void *value, void *extra) {
  (void)window, (void)key, (void)extra;
  free(value);
  return MPI_SUCCESS;
}

void places_begin(void) {
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget_comm, &comm_key, NULL);
  PMPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, forget_window, &window_key, NULL);
}

void places_end(void) {
  PMPI_Comm_free_keyval(&comm_key);
  PMPI_Win_free_keyval(&window_key);
}

static ranks *translate(MPI_Group group) {
  int size = 0;
  MPI_Group world;
  PMPI_Group_size(group, &size);
  int *const own = malloc(sizeof *own * (size_t)size);
  ranks *const found = malloc(sizeof *found + sizeof *own * (size_t)size);
  if (own == NULL || found == NULL) {
    free(own);
    free(found);
    return NULL;
  }
  for (int i = 0; i < size; ++i) {
    own[i] = i;
  }
  found->size = size;
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  PMPI_Group_translate_ranks(group, size, own, world, found->world);
  PMPI_Group_free(&world);
  free(own);
  return found;
}

static ranks *ranks_of_comm(MPI_Comm comm) {
  ranks *found = NULL;
  int is_there = 0;
  pthread_mutex_lock(&lock);
  PMPI_Comm_get_attr(comm, comm_key, &found, &is_there);
  if (!is_there) {
    int has_two = 0;
    MPI_Group group;
    PMPI_Comm_test_inter(comm, &has_two);
    has_two ? PMPI_Comm_remote_group(comm, &group) : PMPI_Comm_group(comm, &group);
    found = translate(group);
    PMPI_Group_free(&group);
    if (found != NULL) {
      PMPI_Comm_set_attr(comm, comm_key, found);
    }
  }
  pthread_mutex_unlock(&lock);
  return found;
}

static ranks *ranks_of_window(MPI_Win window) {
  ranks *found = NULL;
  int is_there = 0;
  pthread_mutex_lock(&lock);
  PMPI_Win_get_attr(window, window_key, &found, &is_there);
  if (!is_there) {
    MPI_Group group;
    PMPI_Win_get_group(window, &group);
    found = translate(group);
    PMPI_Group_free(&group);
    if (found != NULL) {
      PMPI_Win_set_attr(window, window_key, found);
    }
  }
  pthread_mutex_unlock(&lock);
  return found;
}

static int place(const ranks *in, int peer) { return in != NULL && peer >= 0 && peer < in->size ? in->world[peer] : -1; }

int place_in_comm(MPI_Comm comm, int peer) {
  static _Thread_local IN_PROGRAM MPI_Comm last = MPI_COMM_NULL;
  static _Thread_local IN_PROGRAM ranks *last_ranks;
  static _Thread_local IN_PROGRAM unsigned last_freed;
  if (comm == MPI_COMM_WORLD || peer < 0) {
    return peer;
  }
  const unsigned now_freed = atomic_load_explicit(&freed, memory_order_relaxed);
  if (comm != last || now_freed != last_freed) {
    last_ranks = ranks_of_comm(comm);
    last = comm;
    last_freed = now_freed;
  }
  return place(last_ranks, peer);
}

int place_in_window(MPI_Win window, int target) { return place(ranks_of_window(window), target); }

static int *of_cartesian(MPI_Comm comm, int *count) {
  int dimensions = 0;
  PMPI_Cartdim_get(comm, &dimensions);
  int *const peers = malloc(sizeof *peers * (size_t)(2 * dimensions + 1));
  for (int i = 0; peers != NULL && i < dimensions; ++i) {
    PMPI_Cart_shift(comm, i, 1, &peers[2 * i], &peers[2 * i + 1]);
  }
  *count = 2 * dimensions;
  return peers;
}

static int *of_graph(MPI_Comm comm, int *count) {
  int self = 0;
  PMPI_Comm_rank(comm, &self);
  PMPI_Graph_neighbors_count(comm, self, count);
  int *const peers = malloc(sizeof *peers * (size_t)(*count + 1));
  if (peers != NULL) {
    PMPI_Graph_neighbors(comm, self, *count, peers);
  }
  return peers;
}

static int *of_distributed_graph(MPI_Comm comm, int *count) {
  int sources = 0, is_weighted = 0;
  PMPI_Dist_graph_neighbors_count(comm, &sources, count, &is_weighted);
  int *const peers = malloc(sizeof *peers * (size_t)(*count + 1));
  int *const from = malloc(sizeof *from * (size_t)(sources + 1));
  int *const weights = malloc(sizeof *weights * (size_t)(*count + sources + 1));
  if (peers != NULL && from != NULL && weights != NULL) {
    PMPI_Dist_graph_neighbors(comm, sources, from, weights, *count, peers, weights + sources);
  } else {
    *count = 0;
  }
  free(from);
  free(weights);
  return peers;
}

int *neighbours_of(MPI_Comm comm, int *count) {
  int kind = MPI_UNDEFINED;
  PMPI_Topo_test(comm, &kind);
  return kind == MPI_CART         ? of_cartesian(comm, count)
         : kind == MPI_GRAPH      ? of_graph(comm, count)
         : kind == MPI_DIST_GRAPH ? of_distributed_graph(comm, count)
                                  : NULL;
}
