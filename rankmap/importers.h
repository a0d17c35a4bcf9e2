// SPDX-License-Identifier: Apache-2.0
// Patterns out of other programs' files, and into them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "rankmap/pattern.h"
#include "rankmap/qaplib.h"

namespace sekisho::rankmap {

// Loads become bytes, half of them each way (as both directions are in the file, each is one
// message).
absl::StatusOr<Pattern> ParseScotchGraph(std::string_view text, std::string_view file);
absl::StatusOr<Pattern> ParseMetisGraph(std::string_view text, std::string_view file);
// Weights are divided by what they have in common, to fit these formats' integers.
std::string PrintScotchGraph(const Pattern& pattern);
std::string PrintMetisGraph(const Pattern& pattern);

struct NamedText {
  std::string name;
  std::string text;
};
// Open MPI's pml_monitoring, one file a rank: point-to-point messages of application (E) and
// library (I).
absl::StatusOr<Pattern> ParseMonitoring(std::span<const NamedText> files);

// The flows of a QAPLIB instance, as bytes and as messages.
absl::StatusOr<Pattern> PatternOfQap(const QapInstance& instance);

}  // namespace sekisho::rankmap
