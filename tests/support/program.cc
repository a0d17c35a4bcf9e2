// SPDX-License-Identifier: Apache-2.0
#include "tests/support/program.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/eventually.h"

namespace sekisho::test {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Program::~Program() { Stop(SIGTERM); }

void Program::Start(const std::vector<std::string>& arguments) {
  const std::string program = std::string(std::getenv("SEKISHO_BIN")) + "/" + name_;
  std::vector<std::string> words = {name_};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, log_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
  if (posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ) != 0) {
    pid_ = 0;
  }
  posix_spawn_file_actions_destroy(&actions);
}

int Program::NumberAfter(const std::string& words) const {
  std::string log;
  const bool has_come = Eventually([&] {
    log = Log();
    const auto at = log.find(words);
    return at != std::string::npos && log.find('\n', at) != std::string::npos;
  });
  return has_come ? std::atoi(log.c_str() + log.find(words) + words.size()) : 0;
}

long Program::ResidentKib() const {
  const std::string status = ReadFile("/proc/" + std::to_string(pid_) + "/status");
  const size_t at = status.find("VmRSS:");
  return at == std::string::npos ? 0 : std::atol(status.c_str() + at + 6);
}

int Program::Stop(int signal) {
  int status = 0;
  if (pid_ > 0) {
    kill(pid_, signal);
    waitpid(pid_, &status, 0);
    pid_ = 0;
  }
  return status;
}

}  // namespace sekisho::test
