// SPDX-License-Identifier: Apache-2.0
// How the queue server begins a refusal of who calls, before anything of what is asked was judged: docs/protocol/5-queue.md,
// "Callers".
#pragma once

namespace sekisho {

inline constexpr char kCallerRefused[] = "the caller itself is refused: ";

}  // namespace sekisho
