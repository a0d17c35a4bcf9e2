// SPDX-License-Identifier: Apache-2.0
// Does an answer go on where a fetch broke off?  docs/protocol/17-staging.md, "Web servers".  Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sekisho::qserver::stager {

// What has come so far.
struct Fetched {
  uint64_t bytes = 0;
  std::optional<uint64_t> size;  // of the whole, if the server has said it
  std::string validator;  // of the content that they are of, an ETag or a date; empty: who breaks
                          // off begins anew
};

// What the answer to a request for all from `bytes` on says.
struct Resumed {
  long code = 0;
  std::string range;     // Content-Range
  std::string tag;       // ETag
  std::string modified;  // Last-Modified
};

// The size of the whole, if the answer is of the same content and begins at that byte.  It may end
// before the last.
std::optional<uint64_t> SizeIfGoesOn(const Fetched& fetched, const Resumed& answer);

}  // namespace sekisho::qserver::stager
