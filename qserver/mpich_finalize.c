// SPDX-License-Identifier: Apache-2.0
// libsekisho-mpich.so, preloaded into MPICH's ranks: lets MPI_Finalize end.
//
// Debian 12's MPICH talks by UCX.  Over TCP its MPI_Finalize disconnects from each peer and waits until the
// peer answers; a peer that is one step ahead waits in read() for the process manager and answers nobody,
// and the job hangs although all its work is done.  Here a disconnection waits for what is queued to leave,
// for all peers together at most a moment, and never for an answer.
//
// C only, and nothing of ours: it is loaded into users' programs.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <time.h>

// Of UCX 1.13, as far as it is used; its headers are not needed to build.
typedef void (*send_callback)(void* request, int status);
enum { kInProgress = 1, kLastError = -100, kWorkersMax = 64 };
static const int64_t kPatienceNs = 200 * 1000 * 1000;

static void* workers[kWorkersMax];  // MPICH makes them one after the other
static int worker_count;

static int64_t Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void Ignore(void* request, int status) {
  (void)request;
  (void)status;
}

__attribute__((visibility("default"))) int ucp_worker_create(void* context, const void* params,
                                                             void** worker) {
  int (*const create)(void*, const void*, void**) = dlsym(RTLD_NEXT, "ucp_worker_create");
  const int status = create(context, params, worker);
  if (status == 0 && worker_count < kWorkersMax) {
    workers[worker_count++] = *worker;
  }
  return status;
}

__attribute__((visibility("default"))) void* ucp_disconnect_nb(void* endpoint) {
  void* (*const flush)(void*, unsigned, send_callback) = dlsym(RTLD_NEXT, "ucp_ep_flush_nb");
  unsigned (*const progress)(void*) = dlsym(RTLD_NEXT, "ucp_worker_progress");
  int (*const check)(void*) = dlsym(RTLD_NEXT, "ucp_request_check_status");
  void (*const release)(void*) = dlsym(RTLD_NEXT, "ucp_request_free");
  if (!flush || !progress || !check || !release) {
    return 0;
  }

  static int64_t until;  // for all peers together
  if (until == 0) {
    until = Now() + kPatienceNs;
  }
  void* const request = flush(endpoint, 0, Ignore);
  if (request == 0 || (uintptr_t)request >= (uintptr_t)(intptr_t)kLastError) {
    return 0;  // nothing was queued, or the peer has gone already
  }
  while (check(request) == kInProgress) {
    for (int i = 0; i < worker_count; ++i) {
      progress(workers[i]);
    }
    if (Now() > until) {
      break;
    }
  }
  // Also one that has not ended: UCX would report it as leaked, on the program's standard output.
  release(request);
  return 0;
}
