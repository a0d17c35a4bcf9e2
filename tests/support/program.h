// SPDX-License-Identifier: Apache-2.0
// One of our programs as a process of a test, with its log in a file.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace sekisho::test {

std::string ReadFile(const std::string& path);

class Program {
 public:
  // `name` as in build/*/bin.  Not started yet.
  Program(std::string name, std::string log_path) : name_(std::move(name)), log_path_(std::move(log_path)) {}
  ~Program();  // ends it
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void Start(const std::vector<std::string>& arguments);
  // The number after `words` in its log, e.g. " port="; 0 if it does not come.
  int NumberAfter(const std::string& words) const;
  std::string Log() const { return ReadFile(log_path_); }
  int Stop(int signal);  // waitpid's status
  pid_t pid() const { return pid_; }
  long ResidentKib() const;

 private:
  const std::string name_;
  const std::string log_path_;
  pid_t pid_ = 0;
};

}  // namespace sekisho::test
