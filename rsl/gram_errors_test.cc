// SPDX-License-Identifier: Apache-2.0
#include "rsl/gram_errors.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "rsl/gram_states.h"

namespace sekisho::rsl {
namespace {

TEST(GramErrors, NumbersRunFrom1To167WithoutGapAndNamesAreUnique) {
  std::set<std::string_view> names;
  int expected = 1;
  for (const GramError& error : GramErrors()) {
    EXPECT_EQ(error.number, expected++);
    EXPECT_FALSE(error.gloss.empty()) << error.name;
    EXPECT_TRUE(names.insert(error.name).second) << error.name;
  }
  EXPECT_EQ(expected, 168);
}

TEST(GramErrors, NameAndNumberBelongTogether) {
  EXPECT_EQ(GramErrorName(gram::USER_CANCELLED), "USER_CANCELLED");
  EXPECT_EQ(gram::USER_CANCELLED, 8);
  EXPECT_EQ(gram::RSL_EVALUATION_FAILED, 39);
  EXPECT_EQ(gram::BAD_RSL, 48);
  EXPECT_EQ(gram::WAITING_FOR_COMMIT, 110);
  EXPECT_EQ(gram::INVALID_USER_NAME, 167);
  EXPECT_EQ(GramErrorName(0), "SUCCESS");
  EXPECT_EQ(GramErrorName(168), "UNKNOWN");
  EXPECT_EQ(FindGramError(-1), nullptr);
}

TEST(GramStates, NumbersAreGrams) {
  EXPECT_EQ(GramStateFromNumber(128), GramState::kStageOut);
  EXPECT_EQ(GramStateFromNumber(3), std::nullopt);
  EXPECT_EQ(GramStateFromName("SUSPENDED"), GramState::kSuspended);
  EXPECT_EQ(GramStateToName(GramState::kUnsubmitted), "UNSUBMITTED");
  int all = 0;
  for (const GramStateName& entry : kGramStateNames) {
    all |= static_cast<int>(entry.state);
    EXPECT_EQ(IsFinal(entry.state), entry.name == "DONE" || entry.name == "FAILED");
  }
  EXPECT_EQ(all & ~kGramStateAll, 0);
}

}  // namespace
}  // namespace sekisho::rsl
