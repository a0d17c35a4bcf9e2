/* SPDX-License-Identifier: Apache-2.0
 * How a function of MPI is traced: under both of its names, as Open MPI's Fortran calls PMPI_Send where MPICH's calls
 * MPI_Send.  What is real comes from the library behind this one. */
#ifndef SEKISHO_RANKMAP_TRACE_WRAP_H
#define SEKISHO_RANKMAP_TRACE_WRAP_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>

#include "rankmap/trace/counters.h"

#define EXPORTED __attribute__((visibility("default")))

#define TRACED(name, parameters, arguments, counting)                                               \
  static int(*next_##name) parameters SIDE_BY_SIDE;                                                              \
  __attribute__((constructor)) static void find_##name(void) {                                      \
    *(void **)&next_##name = dlsym(RTLD_NEXT, "PMPI_" #name);                                       \
  }                                                                                                 \
  EXPORTED int MPI_##name parameters {                                                              \
    counting;                                                                                       \
    return next_##name arguments;                                                                   \
  }                                                                                                 \
  EXPORTED int PMPI_##name parameters __attribute__((alias("MPI_" #name)));

/* NAME and, with a request behind its parameters, LATER. */
#define UNPACK(...) __VA_ARGS__
#define TRACED_BOTH(name, later, parameters, arguments, counting)         \
  TRACED(name, (UNPACK parameters), (UNPACK arguments), counting)         \
  TRACED(later, (UNPACK parameters, MPI_Request * request), (UNPACK arguments, request), counting)

#endif
