// SPDX-License-Identifier: Apache-2.0
#include "agent/grouping.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <sstream>

#include "agent/task/record.h"

namespace sekisho::agent {
namespace {

using task::Grouping;

struct Mount {
  std::string path;
  std::string type;
  std::string options;
};

std::vector<Mount> Mounts(const std::string& text) {
  std::vector<Mount> mounts;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string device;
    Mount mount;
    if (fields >> device >> mount.path >> mount.type >> mount.options) {
      mounts.push_back(mount);
    }
  }
  return mounts;
}

bool HasWord(const std::string& list, const std::string& word) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

// The agent's own group in the hierarchy of `controller` ("" = v2), e.g. "/system.slice/x.service".
std::string OwnGroup(const std::string& own, const std::string& controller) {
  std::istringstream lines(own);
  std::string line;
  while (std::getline(lines, line)) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : HasWord(controllers, controller)) {
      const std::string path = line.substr(second + 1);
      return path == "/" ? "" : path;
    }
  }
  return "";
}

}  // namespace

std::vector<CgroupPlace> CandidatePlaces(const std::string& mounts, const std::string& own,
                                         const std::string& wanted) {
  std::vector<CgroupPlace> places;
  for (const Mount& mount : Mounts(mounts)) {
    if (mount.type == "cgroup2" && (wanted == "auto" || wanted == "v2")) {
      places.insert(places.begin(), {Grouping::kV2, mount.path + OwnGroup(own, "")});
    } else if (mount.type == "cgroup" && HasWord(mount.options, "freezer") &&
               (wanted == "auto" || wanted == "v1")) {
      places.push_back({Grouping::kV1, mount.path + OwnGroup(own, "freezer")});
    }
  }
  if (wanted == "auto" || wanted == "none") {
    places.push_back({Grouping::kNone, ""});
  }
  return places;
}

absl::StatusOr<CgroupPlace> PrepareCgroup(const std::string& wanted, const std::string& id) {
  std::string mounts;
  std::string own;
  task::ReadFile(AT_FDCWD, "/proc/self/mounts", mounts);
  task::ReadFile(AT_FDCWD, "/proc/self/cgroup", own);
  // No controllers are switched on: a group that distributes them may hold no processes, and the
  // service manager could not put the next agent where this one was.
  for (const CgroupPlace& place : CandidatePlaces(mounts, own, wanted)) {
    if (place.grouping == Grouping::kNone) {
      return place;
    }
    const std::string path = place.parent + "/sekisho-" + id;
    if (mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) {
      return CgroupPlace{place.grouping, path};
    }
  }
  return absl::FailedPreconditionError(
      fmt::format("cgroup \"{}\" is configured, but this machine gives us no such cgroup", wanted));
}

}  // namespace sekisho::agent
