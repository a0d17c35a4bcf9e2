// SPDX-License-Identifier: Apache-2.0
// The version of all programs and of the libraries: that of the project in CMakeLists.txt.
#pragma once

namespace sekisho {

extern const char* const kVersion;

}  // namespace sekisho
