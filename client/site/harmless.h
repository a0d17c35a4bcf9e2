// SPDX-License-Identifier: Apache-2.0
// Words of a site on the user's terminal: reasons, remedies, names.  A site, or whoever has taken it over, must
// not move the cursor, retitle the window or turn text around with them.  Pure.
#pragma once

#include <string>

namespace sekisho::client {

// Control characters of ASCII and of Unicode, line ends too, and what changes the direction of text, as \xHH of
// their bytes; bytes that are not UTF-8 likewise replaced.
std::string Harmless(const std::string& text);

// The same, but line ends stay.
std::string HarmlessLines(const std::string& text);

}  // namespace sekisho::client
