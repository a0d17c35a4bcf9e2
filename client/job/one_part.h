// SPDX-License-Identifier: Apache-2.0
// A multi-request of one part is a job that says itself where it runs:
//   +(&(resourceManagerContact=any)(executable=/bin/hostname))
// Pure.
#pragma once

#include <optional>
#include <string>

namespace sekisho::client {

struct Placed {
  std::string contact;  // as resourceManagerContact says it
  std::string rsl;      // without what only a part may have
};

// Nothing if the text is no such request, or its contact is no plain word.
std::optional<Placed> OnlyPart(const std::string& rsl);

}  // namespace sekisho::client
