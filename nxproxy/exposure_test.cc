// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/exposure.h"

#include <limits>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::nxproxy {
namespace {

using testing::ElementsAre;

constexpr int64_t kLater = std::numeric_limits<int64_t>::max();

Exposure Fresh() {
  Exposure exposure;
  exposure.target = "10.1.0.11:80";
  exposure.bind.verb = wire::Verb::kBind;
  exposure.bind.port = 8080;
  return exposure;
}

Exposure BoundBefore() {
  Exposure exposure = Fresh();
  exposure.endpoint = 7;
  exposure.secret = "secret";
  return exposure;
}

TEST(Exposure, IsGivenUpByTheseRefusalsOfATakeBackAndByNoOthers) {
  std::set<wire::Code> ends;
  for (const wire::CodeInfo& each : wire::AllCodes()) {
    Exposure exposure = BoundBefore();
    exposure.Ask(1, "1");
    const bool is_given_up = exposure.OnRefused(each.code, 0, 0);
    const wire::Message next = exposure.Ask(2, "2");

    EXPECT_EQ(next.endpoint, is_given_up ? 0u : 7u) << each.name;
    EXPECT_EQ(next.secret, is_given_up ? "2" : "secret") << each.name;
    EXPECT_EQ(next.port, 8080u) << each.name;
    if (is_given_up) {
      ends.insert(each.code);
    }
  }

  EXPECT_THAT(ends, ElementsAre(wire::Code::kPortTaken, wire::Code::kNoSuchEndpoint,
                                wire::Code::kNotOwner));
}

TEST(Exposure, GivesNothingUpThatItDidNotHave) {
  Exposure exposure = Fresh();
  exposure.Ask(1, "1");

  EXPECT_FALSE(exposure.OnRefused(wire::Code::kPortTaken, 0, 0));
  EXPECT_FALSE(exposure.IsDue(0));
  EXPECT_TRUE(exposure.IsDue(kLater));
}

TEST(Exposure, IsTheSameOneAgainIfTheAnswerToItsTakeBackIsLost) {
  Exposure exposure = BoundBefore();
  exposure.Ask(1, "1");

  EXPECT_FALSE(exposure.OnLost());
  ASSERT_TRUE(exposure.IsDue(0));
  const wire::Message again = exposure.Ask(2, "2");
  EXPECT_EQ(again.endpoint, 7u);
  EXPECT_EQ(again.secret, "secret");
}

TEST(Exposure, EndsItsSessionIfTheAnswerToItsFirstBindIsLostAndAsksByTheSameSecret) {
  Exposure exposure = Fresh();
  exposure.Ask(1, "1");

  EXPECT_TRUE(exposure.OnLost());
  EXPECT_TRUE(exposure.IsDue(0));
  EXPECT_FALSE(exposure.OnLost());  // and no other one
  EXPECT_EQ(exposure.Ask(2, "2").secret, "1");
}

TEST(Exposure, KeepsItsSessionOnceItIsBound) {
  Exposure exposure = Fresh();
  exposure.Ask(1, "1");
  wire::Message bound;
  bound.endpoint = 9;
  bound.secret = "new";
  exposure.OnBound(bound);

  EXPECT_FALSE(exposure.OnLost());
  EXPECT_FALSE(exposure.IsDue(kLater));
}

}  // namespace
}  // namespace sekisho::nxproxy
