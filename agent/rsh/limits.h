// SPDX-License-Identifier: Apache-2.0
// Between sekisho-rsh and its agent: docs/protocol/7-nodes.md, "Helpers".
#pragma once

#include <cstddef>

namespace sekisho::agent::rsh {

inline constexpr int kMessageMost = 1 << 20;
// Input that the helper has not taken: sekisho-rsh has no more on its way, so that the agent, who
// stops hearing it then, never has to.
inline constexpr size_t kInputMost = 256 << 10;
inline constexpr size_t kInputPiecesMost = 256;

}  // namespace sekisho::agent::rsh
