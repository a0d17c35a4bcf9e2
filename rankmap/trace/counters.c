/* SPDX-License-Identifier: Apache-2.0 */
#include "rankmap/trace/counters.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
  uint64_t bytes, messages;
} count;

typedef struct {
  uint64_t peer, bytes, messages;
} row;

/* Of a communicator: its ranks' places in MPI_COMM_WORLD. */
typedef struct {
  int size;
  int world[];
} ranks;

typedef struct prepared {
  struct prepared *next;
  MPI_Request request;
  int peer; /* in MPI_COMM_WORLD */
  uint64_t bytes;
} prepared;

static count *counts; /* by rank of MPI_COMM_WORLD; null: not counting at all */
static int world_size;
static int is_threaded;
static atomic_int is_counting;
static atomic_int is_over; /* a limit was reached: nothing makes it count again */
static atomic_int iterations_left;
static int ranks_key = MPI_KEYVAL_INVALID;
static atomic_uint ranks_freed; /* what is remembered of communicators is stale when it has changed */
static pthread_mutex_t ranks_lock = PTHREAD_MUTEX_INITIALIZER; /* two threads may use a communicator first */
static pthread_mutex_t prepared_lock = PTHREAD_MUTEX_INITIALIZER;
static prepared *prepared_requests;

uint64_t bytes_of(int64_t number, MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  return number > 0 && size > 0 ? (uint64_t)number * (uint64_t)size : 0;
}

static void add(int peer, uint64_t bytes) {
  if (peer < 0 || peer >= world_size) { /* MPI_PROC_NULL, or of another world */
    return;
  }
  count *const at = &counts[peer];
  if (is_threaded) {
    __atomic_fetch_add(&at->bytes, bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&at->messages, 1, __ATOMIC_RELAXED);
  } else {
    at->bytes += bytes;
    at->messages += 1;
  }
}

static int forget_ranks(MPI_Comm comm, int key, void *value, void *extra) {
  (void)comm, (void)key, (void)extra;
  free(value);
  atomic_fetch_add(&ranks_freed, 1);
  return MPI_SUCCESS;
}

static ranks *find_ranks_alone(MPI_Comm comm) {
  ranks *found = NULL;
  int is_there = 0;
  PMPI_Comm_get_attr(comm, ranks_key, &found, &is_there);
  if (is_there) {
    return found;
  }
  int has_two = 0, size = 0;
  MPI_Group group, world;
  PMPI_Comm_test_inter(comm, &has_two);
  has_two ? PMPI_Comm_remote_group(comm, &group) : PMPI_Comm_group(comm, &group);
  PMPI_Group_size(group, &size);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  int *const own = malloc(sizeof *own * (size_t)size);
  found = malloc(sizeof *found + sizeof *own * (size_t)size);
  if (own != NULL && found != NULL) {
    for (int i = 0; i < size; ++i) {
      own[i] = i;
    }
    found->size = size;
    PMPI_Group_translate_ranks(group, size, own, world, found->world);
    PMPI_Comm_set_attr(comm, ranks_key, found);
  } else {
    free(found);
    found = NULL;
  }
  free(own);
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  return found;
}

static ranks *find_ranks(MPI_Comm comm) {
  pthread_mutex_lock(&ranks_lock);
  ranks *const found = find_ranks_alone(comm);
  pthread_mutex_unlock(&ranks_lock);
  return found;
}

static int world_rank(MPI_Comm comm, int peer) {
  static _Thread_local MPI_Comm last = MPI_COMM_NULL;
  static _Thread_local ranks *last_ranks;
  static _Thread_local unsigned last_freed;
  if (comm == MPI_COMM_WORLD || peer < 0) {
    return peer;
  }
  const unsigned freed = atomic_load_explicit(&ranks_freed, memory_order_relaxed);
  if (comm != last || freed != last_freed) {
    last_ranks = find_ranks(comm);
    last = comm;
    last_freed = freed;
  }
  return last_ranks != NULL && peer < last_ranks->size ? last_ranks->world[peer] : -1;
}

static void stop_counting(void) {
  atomic_store(&is_over, 1);
  atomic_store(&is_counting, 0);
}

static int counts_now(void) { return atomic_load_explicit(&is_counting, memory_order_relaxed); }

static void *stop_in_time(void *seconds) {
  const double wanted = *(double *)seconds;
  struct timespec left = {(time_t)wanted, (long)((wanted - (double)(time_t)wanted) * 1e9)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
  stop_counting();
  return NULL;
}

void counters_begin(int thread_level) {
  static double seconds;
  if (getenv("SEKISHO_TRAFFIC") == NULL) {
    return;
  }
  PMPI_Comm_size(MPI_COMM_WORLD, &world_size);
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget_ranks, &ranks_key, NULL);
  is_threaded = thread_level == MPI_THREAD_MULTIPLE;
  counts = calloc((size_t)world_size, sizeof *counts);
  atomic_store(&is_counting, counts != NULL);
  const char *const iterations = getenv("SEKISHO_TRAFFIC_ITERATIONS");
  atomic_store(&iterations_left, iterations != NULL ? atoi(iterations) : 0);
  const char *const limit = getenv("SEKISHO_TRAFFIC_SECONDS");
  seconds = limit != NULL ? strtod(limit, NULL) : 0;
  pthread_t thread;
  if (seconds > 0 && pthread_create(&thread, NULL, stop_in_time, &seconds) == 0) {
    pthread_detach(thread);
  }
}

void counters_control(int level) {
  if (counts == NULL || atomic_load(&is_over)) {
    return;
  }
  if (level == 0 || level == 1) {
    atomic_store(&is_counting, level);
    if (atomic_load(&is_over)) { /* meanwhile */
      atomic_store(&is_counting, 0);
    }
  } else if (level == 2 && atomic_load(&iterations_left) > 0 && atomic_fetch_sub(&iterations_left, 1) == 1) {
    stop_counting();
  }
}

void counters_sent(MPI_Comm comm, int peer, int64_t number, MPI_Datatype type) {
  if (counts_now()) {
    add(world_rank(comm, peer), bytes_of(number, type));
  }
}

void counters_prepared(MPI_Request request, MPI_Comm comm, int peer, int64_t number, MPI_Datatype type) {
  prepared *const entry = counts != NULL ? malloc(sizeof *entry) : NULL;
  if (entry == NULL) {
    return;
  }
  entry->request = request;
  entry->peer = world_rank(comm, peer);
  entry->bytes = bytes_of(number, type);
  pthread_mutex_lock(&prepared_lock);
  entry->next = prepared_requests;
  prepared_requests = entry;
  pthread_mutex_unlock(&prepared_lock);
}

void counters_started(MPI_Request request) {
  if (!counts_now()) {
    return;
  }
  pthread_mutex_lock(&prepared_lock);
  for (const prepared *at = prepared_requests; at != NULL; at = at->next) {
    if (at->request == request) {
      add(at->peer, at->bytes);
      break;
    }
  }
  pthread_mutex_unlock(&prepared_lock);
}

void counters_freed(MPI_Request request) {
  pthread_mutex_lock(&prepared_lock);
  for (prepared **at = &prepared_requests; *at != NULL; at = &(*at)->next) {
    if ((*at)->request == request) {
      prepared *const gone = *at;
      *at = gone->next;
      free(gone);
      break;
    }
  }
  pthread_mutex_unlock(&prepared_lock);
}

static void sent_in(void *comm, int peer, uint64_t bytes) { add(world_rank(*(MPI_Comm *)comm, peer), bytes); }

int counters_collective(MPI_Comm comm, counted_comm *out) {
  int has_two = 0;
  if (!counts_now() || PMPI_Comm_test_inter(comm, &has_two) != MPI_SUCCESS || has_two) {
    return 0;
  }
  out->comm = comm;
  out->caller.sent = sent_in;
  out->caller.context = &out->comm;
  PMPI_Comm_rank(comm, &out->caller.rank);
  PMPI_Comm_size(comm, &out->caller.size);
  return 1;
}

static int own_rows(row *out) {
  int rows = 0;
  for (int peer = 0; peer < world_size; ++peer) {
    if (counts[peer].messages > 0) {
      if (out != NULL) {
        out[rows] = (row){(uint64_t)peer, counts[peer].bytes, counts[peer].messages};
      }
      ++rows;
    }
  }
  return rows;
}

static int write_rows(FILE *file, const int *sizes, const row *rows) {
  fprintf(file, "# who sent how much to whom, by libsekisho-traffic: source target bytes step messages\nranks %d\n",
          world_size);
  for (int rank = 0; rank < world_size; ++rank) {
    for (int i = 0; i < sizes[rank]; ++i, ++rows) {
      fprintf(file, "%d %llu %llu 0 %llu\n", rank, (unsigned long long)rows->peer, (unsigned long long)rows->bytes,
              (unsigned long long)rows->messages);
    }
  }
  return fflush(file) == 0 && !ferror(file) && fsync(fileno(file)) == 0;
}

/* Whole, or not at all. */
static void write_file(const char *path, const int *sizes, const row *rows) {
  char name[PATH_MAX];
  if (snprintf(name, sizeof name, "%s.%ld.tmp", path, (long)getpid()) >= (int)sizeof name) {
    fprintf(stderr, "libsekisho-traffic: %s: not written: the name is too long\n", path);
    return;
  }
  FILE *const file = fopen(name, "wx");
  int is_written = file != NULL && write_rows(file, sizes, rows);
  is_written = file != NULL && fclose(file) == 0 && is_written;
  if (!is_written || rename(name, path) != 0) {
    fprintf(stderr, "libsekisho-traffic: %s: not written: %s\n", path, strerror(errno));
    unlink(name);
  }
}

/* A program that has come to its end is not worth saving if not even this fits into memory. */
static void *must_have(void *memory) {
  if (memory == NULL) {
    fprintf(stderr, "libsekisho-traffic: not written: no memory is left\n");
    PMPI_Abort(MPI_COMM_WORLD, 71);
  }
  return memory;
}

void counters_end(void) {
  if (counts == NULL) {
    return;
  }
  atomic_store(&is_counting, 0);
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int size = own_rows(NULL);
  row *const own = must_have(malloc(sizeof *own * (size_t)(size + 1)));
  own_rows(own);

  int *const sizes = rank == 0 ? must_have(malloc(sizeof *sizes * (size_t)world_size)) : NULL;
  int *const places = rank == 0 ? must_have(malloc(sizeof *places * (size_t)world_size)) : NULL;
  PMPI_Gather(&size, 1, MPI_INT, sizes, 1, MPI_INT, 0, MPI_COMM_WORLD);
  int total = 0;
  for (int i = 0; rank == 0 && i < world_size; ++i) {
    places[i] = total;
    total += sizes[i];
  }
  row *const all = rank == 0 ? must_have(malloc(sizeof *all * (size_t)(total + 1))) : NULL;
  MPI_Datatype type;
  PMPI_Type_contiguous((int)sizeof(row), MPI_BYTE, &type);
  PMPI_Type_commit(&type);
  PMPI_Gatherv(own, size, type, all, sizes, places, type, 0, MPI_COMM_WORLD);
  PMPI_Type_free(&type);
  if (rank == 0) {
    write_file(getenv("SEKISHO_TRAFFIC"), sizes, all);
  }
  free(own);
  free(sizes);
  free(places);
  free(all);
  PMPI_Comm_free_keyval(&ranks_key);
}
