// SPDX-License-Identifier: Apache-2.0
// What an agent has come to know of one job's ranks, in the order that it did, kept in a file for the agent that
// comes after it.  docs/protocol/15-mpirun.md, "An agent that is killed".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sekisho::agent {

struct PmiEntry {
  enum class Kind : char { kRelease = 'r', kTask = 't', kLine = 'l', kFence = 'f' };
  Kind kind = Kind::kLine;
  int rank = 0;         // whose task or line
  uint64_t number = 0;  // of that
  std::string data;     // a line or a message

  friend bool operator==(const PmiEntry&, const PmiEntry&) = default;
};

std::string EncodePmiEntry(const PmiEntry& entry);
// Takes an entry off `bytes`.  False if there is none, or one that is cut off.
bool TakePmiEntry(std::string_view& bytes, PmiEntry& entry);

class PmiJournal {
 public:
  PmiJournal() = default;
  ~PmiJournal() { Close(); }
  PmiJournal(const PmiJournal&) = delete;
  PmiJournal& operator=(const PmiJournal&) = delete;

  // What is there, made if nothing is.  An end that its agent could not write whole is cut off.  False with errno.
  bool Open(const std::string& path, std::vector<PmiEntry>& entries);
  // False if it cannot be kept, or would become too long: nothing is any more, half of it being worse.
  bool Append(const PmiEntry& entry);
  bool is_open() const { return fd_ >= 0; }
  void Remove();

 private:
  void Close();

  std::string path_;
  int fd_ = -1;
  size_t size_ = 0;
};

}  // namespace sekisho::agent
