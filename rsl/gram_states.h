// SPDX-License-Identifier: Apache-2.0
// GRAM's job states as its protocol numbers and names them: docs/protocol/1-rsl.md, "Job states".
// What a job does between them is the job manager's: this is only the vocabulary.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace sekisho::rsl {

enum class GramState : int {
  kPending = 1,
  kActive = 2,
  kFailed = 4,
  kDone = 8,
  kSuspended = 16,
  kUnsubmitted = 32,
  kStageIn = 64,
  kStageOut = 128,
};

// The mask that a client registers to hear of every state.
inline constexpr int kGramStateAll = 0xFFFFF;

struct GramStateName {
  GramState state;
  std::string_view name;
};

inline constexpr std::array<GramStateName, 8> kGramStateNames = {{
    {GramState::kPending, "PENDING"},
    {GramState::kActive, "ACTIVE"},
    {GramState::kFailed, "FAILED"},
    {GramState::kDone, "DONE"},
    {GramState::kSuspended, "SUSPENDED"},
    {GramState::kUnsubmitted, "UNSUBMITTED"},
    {GramState::kStageIn, "STAGE_IN"},
    {GramState::kStageOut, "STAGE_OUT"},
}};

constexpr std::string_view GramStateToName(GramState state) {
  for (const GramStateName& entry : kGramStateNames) {
    if (entry.state == state) {
      return entry.name;
    }
  }
  return "UNKNOWN";
}

constexpr std::optional<GramState> GramStateFromNumber(int number) {
  for (const GramStateName& entry : kGramStateNames) {
    if (static_cast<int>(entry.state) == number) {
      return entry.state;
    }
  }
  return std::nullopt;
}

constexpr std::optional<GramState> GramStateFromName(std::string_view name) {
  for (const GramStateName& entry : kGramStateNames) {
    if (entry.name == name) {
      return entry.state;
    }
  }
  return std::nullopt;
}

// DONE and FAILED are final: nothing follows them.
constexpr bool IsFinal(GramState state) {
  return state == GramState::kDone || state == GramState::kFailed;
}

}  // namespace sekisho::rsl
