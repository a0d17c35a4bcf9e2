// SPDX-License-Identifier: Apache-2.0
// Loops for the vector width of the machine: SEKISHO_WIDE makes a function of a .cc file as often as there are widths.
#pragma once

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SEKISHO_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define SEKISHO_WIDE
#endif

namespace sekisho::rankmap {

// Lowered to what the target has.
typedef double Four __attribute__((vector_size(32), aligned(8), may_alias));

}  // namespace sekisho::rankmap
