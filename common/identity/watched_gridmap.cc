// SPDX-License-Identifier: Apache-2.0
#include "common/identity/watched_gridmap.h"

#include "common/identity/files.h"

namespace sekisho::identity {

absl::Status WatchedGridmap::Read(Time now) {
  version_ = FileVersion(path_);  // before its content: a change meanwhile is seen the next time
  complained_ = now;
  absl::StatusOr<Gridmap> gridmap = Gridmap::Load(path_);
  status_ = gridmap.status();
  if (gridmap.ok()) {
    gridmap_ = *std::move(gridmap);
  }
  return status_;
}

std::optional<absl::Status> WatchedGridmap::Refresh(Time now) {
  if (FileVersion(path_) != version_) {
    return Read(now);
  }
  if (!status_.ok() && now >= complained_ + kComplainEvery) {
    complained_ = now;
    return status_;
  }
  return std::nullopt;
}

}  // namespace sekisho::identity
