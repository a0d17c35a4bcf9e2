// SPDX-License-Identifier: Apache-2.0
// What files are called where they are going.  Pure.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"

namespace sekisho::client {

std::string BaseName(const std::string& path);

// Where each of `names` goes here: under its base name into `place` if that is a directory; each to standard output
// ("-"); one alone to the file `place`.  InvalidArgument: several are for one file.
absl::StatusOr<std::vector<std::string>> PlacesHere(const std::vector<std::string>& names, const std::string& place,
                                                    bool is_directory);

// Where each of `files` goes in a job's directory: to `to`, below it if it ends in "/" or they are several, or under
// its own base name if it is empty.  InvalidArgument as above.
absl::StatusOr<std::vector<std::string>> PlacesThere(const std::vector<std::string>& files, const std::string& to);

// `name`, or NAME.NUMBER if it is among those that are `taken`.
std::string FreeName(const std::string& name, int number, const std::vector<std::string>& taken);

}  // namespace sekisho::client
