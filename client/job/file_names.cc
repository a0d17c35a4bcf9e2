// SPDX-License-Identifier: Apache-2.0
#include "client/job/file_names.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "common/refusal.h"

namespace sekisho::client {
namespace {

// Each into `directory`, which ends in "/" or is empty.
absl::StatusOr<std::vector<std::string>> Into(const std::string& directory, const std::vector<std::string>& names) {
  std::vector<std::string> places;
  std::map<std::string, std::string> whose;
  for (const std::string& name : names) {
    places.push_back(directory + BaseName(name));
    const auto [other, is_new] = whose.emplace(places.back(), name);
    if (!is_new) {
      return absl::InvalidArgumentError(
          fmt::format("{} and {} would both be {}: name them one at a time", other->second, name, places.back()));
    }
  }
  return places;
}

}  // namespace

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

absl::StatusOr<std::vector<std::string>> PlacesHere(const std::vector<std::string>& names, const std::string& place,
                                                    bool is_directory) {
  if (is_directory) {
    return Into(place + "/", names);
  }
  if (names.size() > 1 && place != "-") {
    return Refuse(absl::StatusCode::kInvalidArgument, 0, fmt::format("-o {}: expected a directory, for several files", place),
                  "make it (mkdir), name one that is there, or take them all on standard output: -o -");
  }
  return std::vector<std::string>(names.size(), place);
}

absl::StatusOr<std::vector<std::string>> PlacesThere(const std::vector<std::string>& files, const std::string& to) {
  if (to.empty() || to.ends_with("/")) {
    return Into(to, files);
  }
  if (files.size() > 1) {
    return Into(to + "/", files);
  }
  return std::vector<std::string>(files.size(), to);
}

std::string FreeName(const std::string& name, int number, const std::vector<std::string>& taken) {
  std::string free = name;
  while (std::find(taken.begin(), taken.end(), free) != taken.end()) {
    free += fmt::format(".{}", number);
  }
  return free;
}

}  // namespace sekisho::client
