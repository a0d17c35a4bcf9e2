// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "client/rankmap/rankmap_otf2.h"

namespace sekisho::client {

absl::StatusOr<rankmap::Pattern> ReadOtf2(const std::string& path) {
  return absl::InvalidArgumentError(fmt::format(
      "{}: this sekisho was built without OTF2; build it where libotf2-trace-dev is installed", path));
}

}  // namespace sekisho::client
