// SPDX-License-Identifier: Apache-2.0
// Where the work for one call, job or peer begins: an exception that leaves it becomes its error.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "common/loop.h"
#include "common/status.h"

namespace sekisho {

// To whom it may concern outside; the log says more.
inline constexpr char kOurFault[] = "a fault of the program's, which its log tells of";

// `work`'s result, a Status or StatusOr; Internal if it throws.  A cancellation goes on to whoever
// cancelled.
template <typename Result>
awaitable<Result> Caught(std::string what, awaitable<Result> work) {
  try {
    co_return co_await std::move(work);
  } catch (...) {
    const std::exception_ptr thrown = std::current_exception();
    if (!WhyThrown(thrown)) {
      throw;
    }
    Logged{std::move(what)}(thrown);
    co_return absl::InternalError(kOurFault);
  }
}

}  // namespace sekisho
