// SPDX-License-Identifier: Apache-2.0
// What PM uses of PMI, version 1: the key-value space and the barrier of whoever started this
// program.  It does not say "init": that is MPI's, which may use the same descriptor before or
// after.  docs/operations/pm.md, "Without a job file".
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <system_error>

#include "transport/pm/types.h"

namespace sekisho::pm {

// VALUE of the word "NAME=VALUE" in a line of words; empty where there is none.
std::string_view PmiValue(std::string_view line, std::string_view name);

class Pmi {
 public:
  static constexpr std::size_t kLineMax = 4096;
  static constexpr Nanos kPatience = 120 * kSecond;  // ranks are started together, or nearly so

  // An answer that takes longer is ETIMEDOUT.  After an error nothing is asked any more (EBADF).
  explicit Pmi(Nanos patience = kPatience) : patience_(patience) {}

  // As PMI_FD, PMI_RANK and PMI_SIZE say.
  std::error_code Open();
  int rank() const { return rank_; }
  int size() const { return size_; }
  int fd() const { return fd_; }

  // Keys and values are words of less than 64 and 256 letters.  A call waits for its answer, the
  // barrier for all ranks.
  std::error_code Put(const char* key, const char* value);
  std::error_code Barrier();
  // The text is zero-terminated.  ENOENT: nobody has put it before a barrier that is over.
  std::error_code Get(const char* key, std::span<char> value);
  // Nothing is asked any more, by nobody in this process: see pmi_farewell.h.
  std::error_code Finalize();

 private:
  // Sends a line of this format, and takes the one that comes, which must be of that command.
  [[gnu::format(printf, 3, 4)]] std::error_code Ask(std::string_view answer, const char* format,
                                                    ...);
  std::error_code Exchange(std::string_view question);
  std::error_code Read();

  const Nanos patience_;
  int fd_ = -1, rank_ = 0, size_ = 0;
  std::array<char, 256> space_{};  // the name of the key-value space
  std::array<char, kLineMax> text_;
  std::string_view line_;  // the last answer, in text_
};

}  // namespace sekisho::pm
