// SPDX-License-Identifier: Apache-2.0
// Names as parts of URNs, of which GLUE makes ids.  Pure.
#pragma once

#include <string>
#include <string_view>

namespace sekisho::glue {

// What is not safe in a URN is given by its bytes, %XX: ids stay well formed whatever a site, a queue or a
// resource is called.
std::string ToUrnPart(std::string_view name);

// The name again.  What is no escape stays as it is.
std::string FromUrnPart(std::string_view part);

}  // namespace sekisho::glue
