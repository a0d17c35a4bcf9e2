// SPDX-License-Identifier: Apache-2.0
// What a web server has, or gets, by libcurl: docs/protocol/17-staging.md, "Web servers".
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/status.h"

namespace sekisho::qserver::stager {

// May this address be asked?  Not the machine's own, nor those of its link: what listens there trusts who is near.
bool IsFetchable(std::string_view ip);

// Hands it to `add` piece by piece; a connection that breaks is followed by another, from that byte on, as long as the
// server has the same there.  InvalidArgument: that server will never give it, or it has more than `bytes_most` (0:
// any).  FailedPrecondition: perhaps later.  An error of `add` is passed on.
absl::Status FetchUrl(const std::string& url, uint64_t bytes_most,
                      const std::function<absl::Status(std::string_view)>& add);

// Gives it a file of `size` bytes by PUT, from the byte `from` on (then with a Content-Range: it has what is before); `next`
// gives them piece by piece, at the end an empty one.  Redirections are not followed.  Errors as above; one of `next` is
// passed on.
absl::Status SendToUrl(const std::string& url, uint64_t from, uint64_t size,
                       const std::function<absl::StatusOr<std::string>()>& next);

}  // namespace sekisho::qserver::stager
