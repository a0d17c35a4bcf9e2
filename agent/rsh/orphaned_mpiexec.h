// SPDX-License-Identifier: Apache-2.0
// MPICH's mpiexec waits for ever for a proxy that has gone before it has connected: that its launcher, we, has ended tells
// it nothing.
#pragma once

#include <string_view>

#include <sys/types.h>

namespace sekisho::agent::rsh {

// By the name of its process, `/proc/PID/comm`.  Others' parents, mpirun of Open MPI and users' scripts, hear how we end.
bool WaitsForItsProxies(std::string_view name);

// Leaves a child behind that ends our parent, if that is such a launcher: by SIGTERM `patience_ms` from now, and by force
// as long after that.  It goes with the parent.  To be called when a helper was lost or never came to be.
void WatchMpiexec(int patience_ms);

}  // namespace sekisho::agent::rsh
