// SPDX-License-Identifier: Apache-2.0
// libsekisho-mpich.so, preloaded into MPICH's ranks: lets MPI_Finalize end, and no send be lost in it.
//
// Debian 12's MPICH talks by UCX.  Over TCP its MPI_Finalize disconnects from each peer and waits until the
// peer answers; then all wait for each other at the process manager's barrier, in read(), and answer nobody: the
// job hangs although all its work is done.  Here nobody waits for a disconnection, and who waits at the barrier
// lets UCX go on.  So what he has left to send arrives: who still receives has not come to the barrier.
//
// C only, and nothing of ours: it is loaded into users' programs.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

enum { kWorkersMax = 64, kNapMs = 1 };

static void* workers[kWorkersMax];  // of UCX; MPICH makes them one after the other
static int worker_count;
static _Thread_local int is_ending;  // this thread is between MPI_Finalize's disconnections and its workers' end

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
  (void)endpoint;  // ends with its worker
  is_ending = 1;
  return 0;  // done
}

__attribute__((visibility("default"))) void ucp_worker_destroy(void* worker) {
  void (*const destroy)(void*) = dlsym(RTLD_NEXT, "ucp_worker_destroy");
  is_ending = 0;
  worker_count = 0;  // all of them end now
  destroy(worker);
}

// Until `fd` can be read.  Where UCX has nothing to do it naps: others, and who carries their bytes, need the
// processor.
static void ServeUntilReadable(int fd) {
  unsigned (*const progress)(void*) = dlsym(RTLD_NEXT, "ucp_worker_progress");
  struct pollfd wanted = {fd, POLLIN, 0};
  unsigned done;
  do {
    done = 0;
    for (int i = 0; i < worker_count; ++i) {
      done += progress(workers[i]);
    }
  } while (poll(&wanted, 1, done > 0 ? 0 : kNapMs) <= 0);
}

__attribute__((visibility("default"))) ssize_t read(int fd, void* buffer, size_t size) {
  static ssize_t (*next)(int, void*, size_t);
  if (!next) {
    next = dlsym(RTLD_NEXT, "read");
  }
  if (is_ending && (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0) {
    ServeUntilReadable(fd);
  }
  return next(fd, buffer, size);
}
