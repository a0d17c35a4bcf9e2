// SPDX-License-Identifier: Apache-2.0
// Standard input that comes over the network: the agent appends to a file, the supervisor moves it
// on into the task's pipe.  So the task sees no end of file when the agent dies, and no byte twice.
#pragma once

#include <sys/types.h>
#include <cstdint>

namespace sekisho::agent::task {

class InputPump {
 public:
  explicit InputPump(int dir_fd) : dir_fd_(dir_fd) {}
  ~InputPump();
  InputPump(const InputPump&) = delete;
  InputPump& operator=(const InputPump&) = delete;

  // The pipe's read end, to be the task's standard input and owned by `uid`; -1 with errno.
  int Open(uid_t uid, gid_t gid);

  // The file has grown, or is now complete.
  void Grown(bool is_last);
  // Moves what fits.
  void Pump();

  // To be polled for POLLOUT, or -1 if there is nothing to move.
  int wait_fd() const { return is_full_ ? pipe_ : -1; }
  // What was moved could not be told: Pump tries that again, too.
  bool is_behind() const { return taken_ != told_; }

 private:
  void CloseTask();
  void Publish();
  bool Tell();

  int dir_fd_;
  int file_ = -1;
  int taken_file_ = -1;
  int pipe_ = -1;
  loff_t taken_ = 0;
  loff_t told_ = 0;  // of that
  loff_t freed_ = 0;
  bool is_last_ = false;
  bool is_full_ = false;
};

}  // namespace sekisho::agent::task
