/* SPDX-License-Identifier: Apache-2.0
 * Preloaded into an Open MPI program: its ranks stop at the door out of MPI_Finalize, between its last collective and what they say
 * to their PMIx server.  Each makes the file leaving.RANK, and goes on when there is a file go.RANK; both in $LATE_LEAVE. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int inits; /* the library counts them: its last finalize is the one that is said */

int PMIx_Init(void* process, void* infos, size_t count) {
  int (*const init)(void*, void*, size_t) = (int (*)(void*, void*, size_t))dlsym(RTLD_NEXT, "PMIx_Init");
  ++inits;
  return init(process, infos, count);
}

int PMIx_Finalize(const void* infos, size_t count) {
  int (*const finalize)(const void*, size_t) = (int (*)(const void*, size_t))dlsym(RTLD_NEXT, "PMIx_Finalize");
  char path[4096];
  if (--inits == 0) {
    snprintf(path, sizeof path, "%s/leaving.%s", getenv("LATE_LEAVE"), getenv("PMIX_RANK"));
    close(open(path, O_WRONLY | O_CREAT, 0644));
    snprintf(path, sizeof path, "%s/go.%s", getenv("LATE_LEAVE"), getenv("PMIX_RANK"));
    while (access(path, F_OK) != 0) {
      usleep(1000);
    }
  }
  return finalize(infos, count);
}
