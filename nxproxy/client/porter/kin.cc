// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/kin.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>

#include <dirent.h>
#include <unistd.h>

namespace sekisho::nxproxy::client {
namespace {

// Each variable ends with a zero byte.
bool HasVariable(const std::string& environment, const std::string& variable) {
  size_t at = 0;
  while ((at = environment.find(variable, at)) != std::string::npos) {
    const size_t end = at + variable.size();
    if ((at == 0 || environment[at - 1] == '\0') && end < environment.size() &&
        environment[end] == '\0') {
      return true;
    }
    at = end;
  }
  return false;
}

}  // namespace

bool HasKin(const std::string& variable) {
  DIR* const folder = opendir("/proc");
  if (folder == nullptr) {
    return false;
  }
  const std::string own = std::to_string(getpid());
  bool is_found = false;
  while (const dirent* entry = is_found ? nullptr : readdir(folder)) {
    const std::string name = entry->d_name;
    if (name == own ||
        !std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c); })) {
      continue;
    }
    std::ifstream file("/proc/" + name + "/environ", std::ios::binary);
    const std::string environment((std::istreambuf_iterator<char>(file)),
                                  std::istreambuf_iterator<char>());
    is_found = HasVariable(environment, variable);
  }
  closedir(folder);
  return is_found;
}

}  // namespace sekisho::nxproxy::client
