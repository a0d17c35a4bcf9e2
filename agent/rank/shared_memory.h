// SPDX-License-Identifier: Apache-2.0
// Where Open MPI's ranks of a node make the memory that they share: docs/protocol/15-mpirun.md, "Open MPI".
#pragma once

#include <filesystem>
#include <string>

namespace sekisho::agent {

// A folder's name, of the task at `directory`, STATE/JOB/TASK, which hosts their PMIx server.  That makes and removes it; if it is
// killed, whoever removes the task.
inline std::string SharedMemoryOf(const std::filesystem::path& directory) {
  std::string path = "/dev/shm/sekisho-";
  path += directory.parent_path().filename().string();
  path += '-';
  path += directory.filename().string();
  return path;
}

}  // namespace sekisho::agent
