// SPDX-License-Identifier: Apache-2.0
// A launcher takes a rank that has spoken to it and ends without "finalize" for one that crashed:
// MPICH's kills all the others then.  MPI says it for programs that use MPI; for the others we do,
// when they end.  docs/operations/pm.md, "Without a job file".
#pragma once

namespace sekisho::pm {

// This process has used the launcher's descriptor, and says farewell when it ends by exit or by
// returning from main.  Nobody does so for it who ends otherwise, nor a child of fork.
void SayPmiFarewellAtEnd(int fd);

}  // namespace sekisho::pm
