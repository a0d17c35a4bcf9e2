// SPDX-License-Identifier: Apache-2.0
// The version of all programs and of the libraries.
#pragma once

namespace sekisho {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace sekisho
