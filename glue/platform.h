// SPDX-License-Identifier: Apache-2.0
// Architectures: what uname(1) and inventories say, as GLUE says it.
#pragma once

#include <string>

namespace sekisho::glue {

// The enumeration is open: what it has no word for stays as it is.
inline std::string Platform(const std::string& architecture) {
  if (architecture == "x86_64") return "amd64";
  if (architecture == "i686" || architecture == "i586") return "i386";
  if (architecture == "ppc64le" || architecture == "ppc64") return "powerpc";
  return architecture;
}

}  // namespace sekisho::glue
