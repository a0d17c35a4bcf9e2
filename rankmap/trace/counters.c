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

#include "rankmap/trace/distances.h"
#include "rankmap/trace/places.h"
#include "rankmap/trace/report.h"

typedef struct {
  uint64_t source, target, bytes, messages;
} row;

typedef struct prepared {
  struct prepared *next;
  MPI_Request request;
  int peer; /* in MPI_COMM_WORLD */
  uint64_t bytes;
} prepared;

static traffic_count *counts;  /* sent, by rank of MPI_COMM_WORLD; null: not counting at all */
static traffic_count *fetched; /* from whom this rank took it */
quick_counter quick SIDE_BY_SIDE;
static int world_size, world_rank;
static int is_threaded;
static int is_reported; /* on standard error, each rank its own, in place of a file */
static int has_reported;
static pthread_mutex_t report_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int is_over; /* a limit was reached: nothing makes it count again */
static atomic_int iterations_left;
static pthread_mutex_t prepared_lock = PTHREAD_MUTEX_INITIALIZER;
static prepared *prepared_requests;

/* Their handles are never freed, so their sizes can be remembered. */
static int is_predefined(MPI_Datatype type) {
  const MPI_Datatype all[] = {MPI_BYTE,          MPI_PACKED,    MPI_CHAR,     MPI_SIGNED_CHAR,   MPI_UNSIGNED_CHAR,
                              MPI_SHORT,         MPI_INT,       MPI_LONG,     MPI_LONG_LONG,     MPI_UNSIGNED,
                              MPI_UNSIGNED_LONG, MPI_FLOAT,     MPI_DOUBLE,   MPI_LONG_DOUBLE,   MPI_C_DOUBLE_COMPLEX,
                              MPI_INT32_T,       MPI_INT64_T,   MPI_UINT32_T, MPI_UINT64_T,      MPI_C_FLOAT_COMPLEX,
                              MPI_INTEGER,       MPI_REAL,      MPI_COMPLEX,  MPI_DOUBLE_PRECISION, MPI_DOUBLE_COMPLEX};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) {
    if (type == all[i] && type != MPI_DATATYPE_NULL) {
      return 1;
    }
  }
  return 0;
}

static int size_of(MPI_Datatype type) {
  static _Thread_local IN_PROGRAM MPI_Datatype last;
  static _Thread_local IN_PROGRAM int last_size;
  static _Thread_local IN_PROGRAM int has_last;
  if (has_last && type == last) {
    return last_size;
  }
  int size = 0;
  PMPI_Type_size(type, &size);
  if (is_predefined(type)) {
    last = type;
    last_size = size;
    has_last = 1;
    if (!is_threaded) {
      quick.type = type;
      quick.type_size = (uint64_t)size;
    }
  }
  return size;
}

uint64_t bytes_of(int64_t number, MPI_Datatype type) {
  const int size = size_of(type);
  return number > 0 && size > 0 ? (uint64_t)number * (uint64_t)size : 0;
}

static void add_to(traffic_count *table, int peer, uint64_t bytes) {
  if (peer < 0 || peer >= world_size) { /* MPI_PROC_NULL, or of another world */
    return;
  }
  traffic_count *const at = &table[peer];
  if (is_threaded) {
    __atomic_fetch_add(&at->bytes, bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&at->messages, 1, __ATOMIC_RELAXED);
  } else {
    at->bytes += bytes;
    at->messages += 1;
  }
}

static void add(int peer, uint64_t bytes) { add_to(counts, peer, bytes); }

/* Once, and it is over when this returns.  What another thread adds meanwhile may be missing. */
static void report(void) {
  pthread_mutex_lock(&report_lock);
  for (int i = 0; is_reported && !has_reported && i < 2 * world_size; ++i) {
    if (counts[i].messages > 0) {
      report_line(i < world_size ? "sent" : "fetched", (uint64_t)world_rank, (uint64_t)(i % world_size), counts[i].bytes,
                  counts[i].messages);
    }
  }
  if (is_reported && !has_reported) {
    report_end(world_rank, world_size);
  }
  has_reported = 1;
  pthread_mutex_unlock(&report_lock);
}

static void stop_counting(void) {
  atomic_store(&is_over, 1);
  atomic_store(&quick.is_counting, 0);
  report();
}

static int counts_now(void) { return atomic_load_explicit(&quick.is_counting, memory_order_relaxed); }

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
  PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  places_begin();
  is_reported = strcmp(getenv("SEKISHO_TRAFFIC"), "-") == 0;
  if (is_reported) {
    distances_report();
  }
  is_threaded = thread_level == MPI_THREAD_MULTIPLE;
  counts = calloc(2 * (size_t)world_size, sizeof *counts);
  fetched = counts != NULL ? counts + world_size : NULL;
  quick.counts = counts;
  quick.world_size = is_threaded ? 0 : world_size;
  atomic_store(&quick.is_counting, counts != NULL);
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
    atomic_store(&quick.is_counting, level);
    if (atomic_load(&is_over)) { /* meanwhile */
      atomic_store(&quick.is_counting, 0);
    }
  } else if (level == 2 && atomic_load(&iterations_left) > 0 && atomic_fetch_sub(&iterations_left, 1) == 1) {
    stop_counting();
  }
}

void counters_sent_with_care(MPI_Comm comm, int peer, int64_t number, MPI_Datatype type) {
  add(place_in_comm(comm, peer), bytes_of(number, type));
}

void counters_put(MPI_Win window, int target, int64_t number, MPI_Datatype type) {
  if (counts_now()) {
    add(place_in_window(window, target), bytes_of(number, type));
  }
}

void counters_got(MPI_Win window, int target, int64_t number, MPI_Datatype type) {
  if (counts_now()) {
    add_to(fetched, place_in_window(window, target), bytes_of(number, type));
  }
}

void counters_neighbours(MPI_Comm comm, int64_t number, const int numbers[], MPI_Datatype type,
                         const MPI_Datatype types[]) {
  int count = 0;
  int *const peers = counts_now() ? neighbours_of(comm, &count) : NULL;
  for (int i = 0; peers != NULL && i < count; ++i) {
    add(place_in_comm(comm, peers[i]), bytes_of(numbers != NULL ? numbers[i] : number, types != NULL ? types[i] : type));
  }
  free(peers);
}

void counters_prepared(MPI_Request request, MPI_Comm comm, int peer, int64_t number, MPI_Datatype type) {
  prepared *const entry = counts != NULL ? malloc(sizeof *entry) : NULL;
  if (entry == NULL) {
    return;
  }
  entry->request = request;
  entry->peer = place_in_comm(comm, peer);
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

static void sent_in(void *comm, int peer, uint64_t bytes) { add(place_in_comm(*(MPI_Comm *)comm, peer), bytes); }

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

static int own_rows(int self, row *out) {
  int rows = 0;
  for (int i = 0; i < 2 * world_size; ++i) {
    if (counts[i].messages > 0) {
      const uint64_t peer = (uint64_t)(i % world_size);
      const int is_sent = i < world_size;
      if (out != NULL) {
        out[rows] = (row){is_sent ? (uint64_t)self : peer, is_sent ? peer : (uint64_t)self, counts[i].bytes,
                          counts[i].messages};
      }
      ++rows;
    }
  }
  return rows;
}

static int write_rows(FILE *file, int count, const row *rows) {
  fprintf(file, "# who sent how much to whom, by libsekisho-traffic: source target bytes step messages\nranks %d\n",
          world_size);
  for (int i = 0; i < count; ++i) {
    fprintf(file, "%llu %llu %llu 0 %llu\n", (unsigned long long)rows[i].source, (unsigned long long)rows[i].target,
            (unsigned long long)rows[i].bytes, (unsigned long long)rows[i].messages);
  }
  return fflush(file) == 0 && !ferror(file) && fsync(fileno(file)) == 0;
}

/* Whole, or not at all. */
static void write_file(const char *path, int count, const row *rows) {
  char name[PATH_MAX];
  if (snprintf(name, sizeof name, "%s.%ld.tmp", path, (long)getpid()) >= (int)sizeof name) {
    fprintf(stderr, "libsekisho-traffic: %s: not written: the name is too long\n", path);
    return;
  }
  FILE *const file = fopen(name, "wx");
  int is_written = file != NULL && write_rows(file, count, rows);
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
  atomic_store(&quick.is_counting, 0);
  if (is_reported) {
    report();
    places_end();
    return;
  }
  const int rank = world_rank;
  const int size = own_rows(rank, NULL);
  row *const own = must_have(malloc(sizeof *own * (size_t)(size + 1)));
  own_rows(rank, own);

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
    write_file(getenv("SEKISHO_TRAFFIC"), total, all);
  }
  free(own);
  free(sizes);
  free(places);
  free(all);
  places_end();
}
