// SPDX-License-Identifier: Apache-2.0
// A daemon's grid-mapfile: read again when the file has changed.  While a version is broken the last good one
// stays in force, and whoever was taken out of the file still gets in: that is complained of, not once but as
// long as it lasts.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "common/identity/gridmap.h"

namespace sekisho::identity {

class WatchedGridmap {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::minutes kComplainEvery{5};

  explicit WatchedGridmap(std::string path) : path_(std::move(path)) {}
  WatchedGridmap(const WatchedGridmap&) = delete;
  WatchedGridmap& operator=(const WatchedGridmap&) = delete;

  // At the start, and when told to.
  absl::Status Read(Time now);

  // Looks, as often as it is asked.  What is to be said of it: nothing, that it was read again (OK), or what
  // is wrong with it.
  std::optional<absl::Status> Refresh(Time now);

  // As last read without an error; Read must have succeeded once.
  const Gridmap& gridmap() const { return *gridmap_; }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  std::optional<Gridmap> gridmap_;
  uint64_t version_ = 0;
  absl::Status status_;  // of that version
  Time complained_{};
};

}  // namespace sekisho::identity
