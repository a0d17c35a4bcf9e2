// SPDX-License-Identifier: Apache-2.0
#include "topology/upkeep.h"

#include <gmock/gmock.h>

#include "topology/run.h"
#include "topology/sim/families.h"
#include "topology/sim/network.h"
#include "topology/sim/score.h"

namespace sekisho::topology {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A site whose hosts come and go.
class UpkeepTest : public ::testing::Test {
 protected:
  void Join(int first, int last) {
    for (int host = first; host < last; ++host) {
      upkeep_.Join(Name(host), now_s_);
      ready_.insert(Name(host));
    }
  }
  void Leave(int host) {
    upkeep_.Leave(Name(host), now_s_);
    ready_.erase(Name(host));
  }
  static std::string Name(int host) { return "n" + std::to_string(host); }

  std::string RunSession() {
    Upkeep::Session session = upkeep_.Begin(ready_, now_s_);
    const auto totals = RunVirtually(*session.method, [&](Request request, double) {
      request.from = std::stoi(session.hosts[request.from].substr(1));
      request.to = std::stoi(session.hosts[request.to].substr(1));
      return absl::StatusOr<Answer>(network_.Measure(request));
    });
    EXPECT_TRUE(totals.ok());
    measurements_ = totals->measurements;
    return upkeep_.End(std::move(session), now_s_);
  }

  // Of all hosts of the truth; those without a place have none.
  sim::Score Judge() const {
    std::vector<std::string> names;
    for (int host = 0; host < truth_.host_count; ++host) {
      names.push_back(Name(host));
    }
    return sim::Judge(truth_, ParseTree(upkeep_.Text(), "tree", names)->tree, 20000);
  }

  double now_s_ = 1000;
  sim::Truth truth_ = *sim::MakeFamily("single64", 81);
  sim::Network network_{truth_, 5};
  std::set<std::string> ready_;
  Upkeep upkeep_{{.settle_s = 5, .period_s = 600, .forget_s = 5000, .seed = 3}};
  long measurements_ = 0;
};

TEST_F(UpkeepTest, WaitsForASecondHostAndForMoreToCome) {
  EXPECT_EQ(upkeep_.DueAt_s(), kInfinity);
  Join(0, 1);
  EXPECT_EQ(upkeep_.DueAt_s(), kInfinity);
  now_s_ = 1010;
  Join(1, 2);
  EXPECT_EQ(upkeep_.DueAt_s(), 1015);
  RunSession();
  now_s_ = 1020;
  Join(2, 3);
  EXPECT_EQ(upkeep_.DueAt_s(), 1025);
}

TEST_F(UpkeepTest, PlacesNewcomersForAFewMeasurementsEach) {
  Join(0, 56);
  EXPECT_EQ(RunSession(), "inferred anew");
  const uint64_t first = upkeep_.generation();

  Join(56, 64);
  EXPECT_EQ(RunSession(), "8 hosts placed");

  EXPECT_GT(upkeep_.generation(), first);
  EXPECT_LE(measurements_, 3 * 64 + 8 * 36);
  EXPECT_GE(Judge().accuracy, 0.99);
}

TEST_F(UpkeepTest, SaysNothingWhereNothingChanged) {
  Join(0, 64);
  RunSession();
  const std::string text = upkeep_.Text();

  for (int round = 0; round < 20; ++round) {
    now_s_ = upkeep_.DueAt_s();
    EXPECT_EQ(RunSession(), "");
  }

  EXPECT_EQ(upkeep_.generation(), 1u);
  EXPECT_EQ(now_s_, 1000 + 20 * 600);
}

TEST_F(UpkeepTest, KeepsThePlaceOfAHostThatIsAwayUntilItIsForgotten) {
  Join(0, 64);
  RunSession();
  Leave(7);

  EXPECT_EQ(RunSession(), "");
  EXPECT_EQ(Judge().hosts_lost, 0);

  now_s_ += 5000;
  EXPECT_EQ(RunSession(), "1 host gone");
  EXPECT_EQ(Judge().hosts_lost, 1);
}

TEST_F(UpkeepTest, GoesOnWithTheTreeOfAnEarlierLife) {
  Join(0, 64);
  RunSession();
  Upkeep later({.seed = 9});

  later.Restore(*ParseTree(upkeep_.Text(), "tree"), 1);
  upkeep_ = std::move(later);

  EXPECT_EQ(RunSession(), "");
  EXPECT_EQ(Judge().hosts_lost, 0);
}

TEST_F(UpkeepTest, KeepsItsTreeWhereNobodyAnswersAnyMore) {
  Join(0, 64);
  RunSession();
  const std::string text = upkeep_.Text();
  ready_.clear();

  EXPECT_EQ(RunSession(), "");
  EXPECT_EQ(upkeep_.Text(), text);
}

TEST_F(UpkeepTest, DoesNotBeginASessionForEachHostThatCannotBePlaced) {
  truth_.is_dead[63] = true;
  Join(0, 64);
  RunSession();

  EXPECT_EQ(upkeep_.DueAt_s(), 1000 + 600);
}

}  // namespace
}  // namespace sekisho::topology
