// SPDX-License-Identifier: Apache-2.0
// Of libsekisho-mpich.so: tells which MPI a rank has loaded, as that says itself, before the rank's
// program begins. docs/protocol/15-mpirun.md, "Which MPI".
//
// SEKISHO_TELL_MPI is the descriptor that is told, or `pmi`: then the rank's process manager.  It
// names the first process that has an MPI: a shell before it leaves it alone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  kVersionMax = 8192,
  kToldMax = 100
};  // MPICH's MPI_MAX_LIBRARY_VERSION_STRING, the longest known

// Whatever it is: a rank that is not understood goes on, as without us.
static void SkipAnswer(int fd) {
  char byte = 0;
  while (byte != '\n' && read(fd, &byte, 1) == 1) {
  }
}

static void TellPmi(const char* text) {
  const char* const fd = getenv("PMI_FD");
  const char* const rank = getenv("PMI_RANK");
  if (fd && rank) {
    dprintf(atoi(fd), "cmd=put kvsname=- key=sekisho-mpi-%s value=%s\n", rank, text);
    SkipAnswer(atoi(fd));
  }
}

static void TellPipe(int fd, const char* text) {
  dprintf(fd, "%s\n", text);
  close(fd);
}

__attribute__((constructor)) static void TellMpi(void) {
  static char version[kVersionMax + 1];
  int length = 0;
  const char* const where = getenv("SEKISHO_TELL_MPI");
  int (*const ask)(char*, int*) = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
  if (!where || !ask || ask(version, &length) != 0) {
    return;
  }
  version[strcspn(version, "\n")] = 0;
  version[kToldMax] = 0;
  for (char* tab = version; (tab = strchr(tab, '\t'));) {  // PMI takes none; MPICH's has one
    *tab = ' ';
  }
  if (strcmp(where, "pmi") == 0) {
    TellPmi(version);
  } else {
    TellPipe(atoi(where), version);
  }
  unsetenv("SEKISHO_TELL_MPI");  // what it starts is not a rank
}
