// SPDX-License-Identifier: Apache-2.0
#include "agent/host_facts.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/utsname.h>
#include <cstdlib>

#include "agent/task/record.h"
#include "common/utf8.h"

namespace sekisho::agent {
namespace {

std::string TextOf(const char* path) {
  std::string text;
  task::ReadFile(AT_FDCWD, path, text);
  return text;
}

int Processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// The rest of the line that begins with `key`.
std::string AfterKey(const std::string& text, const std::string& key) {
  size_t at = text.rfind("\n" + key);
  if (text.compare(0, key.size(), key) == 0) {
    at = 0;
  } else if (at == std::string::npos) {
    return "";
  } else {
    ++at;
  }
  at += key.size();
  return text.substr(at, text.find('\n', at) - at);
}

}  // namespace

double ParseLoad(const std::string& loadavg) { return std::strtod(loadavg.c_str(), nullptr); }

int64_t ParseMeminfoMb(const std::string& meminfo, const std::string& key) {
  return std::strtoll(AfterKey(meminfo, key + ":").c_str(), nullptr, 10) / 1024;
}

std::string ParseOsName(const std::string& os_release) {
  std::string name = AfterKey(os_release, "PRETTY_NAME=");
  if (name.size() >= 2 && name.front() == '"' && name.back() == '"') {
    name = name.substr(1, name.size() - 2);
  }
  return name;
}

HostFacts ReadHostFacts() {
  HostFacts facts;
  facts.boot_id = TextOf("/proc/sys/kernel/random/boot_id");
  facts.boot_id = facts.boot_id.substr(0, facts.boot_id.find('\n'));
  facts.processors = Processors();
  facts.memory_mb = ParseMeminfoMb(TextOf("/proc/meminfo"), "MemTotal");
  facts.os = ToUtf8(ParseOsName(TextOf("/usr/lib/os-release")));
  utsname name{};
  if (uname(&name) == 0) {
    facts.architecture = name.machine;
  }
  return facts;
}

HostLoad ReadHostLoad() {
  return {ParseLoad(TextOf("/proc/loadavg")),
          ParseMeminfoMb(TextOf("/proc/meminfo"), "MemAvailable")};
}

}  // namespace sekisho::agent
