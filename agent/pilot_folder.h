// SPDX-License-Identifier: Apache-2.0
// Where all pilots of one job on one host have their records: docs/protocol/13-slurm.md, "Restart".
#pragma once

#include <string>

namespace sekisho::agent {

// PARENT/sekisho-JOB.XXXXXX, gone with this object.  A keeper that is killed by force leaves its own behind; so whoever
// makes one removes those of the same account here that nobody holds any more.
class PilotFolder {
 public:
  PilotFolder(const std::string& parent, const std::string& job_id);
  ~PilotFolder();
  PilotFolder(const PilotFolder&) = delete;
  PilotFolder& operator=(const PilotFolder&) = delete;

  bool is_made() const { return lock_ >= 0; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int lock_ = -1;
};

}  // namespace sekisho::agent
