// SPDX-License-Identifier: Apache-2.0
// The tables of rank placement.
#pragma once

#include <cstdint>
#include <string>

namespace sekisho::bench {

// Every `every`-th instance of the directory, for `seconds` of CPU each or until best known.
void QaplibTable(const std::string& directory, double seconds, int every, uint64_t seed);

// Fourteen problems on tori, `seconds` of CPU each on one thread; `permute` < 0 keeps the natural
// order.
void TorusTable(double seconds, int64_t permute, uint64_t seed);

}  // namespace sekisho::bench
