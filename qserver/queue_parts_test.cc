// SPDX-License-Identifier: Apache-2.0
#include <climits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "qserver/demand.h"
#include "qserver/queue.h"

namespace sekisho::qserver {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kNow = 1'000'000;

// Into the queue as job j, at once on as many nodes as it has ranks: n1, n2, ...
Effects AcceptPart(Queue& queue, int first_rank, int count, const std::string& relay) {
  const std::string rsl = "&(executable=/bin/x)(count=" + std::to_string(count) + ")";
  Admitted admitted;
  admitted.job_id = "j";
  admitted.submitted.set_rsl(rsl);
  admitted.submitted.set_subject("/CN=Alice");
  admitted.demand = MakeDemand("j", *rsl::ParseAndDescribe(rsl, {}), 0);
  admitted.charter.emplace();
  admitted.charter->set_world("world-1");
  admitted.charter->set_first_rank(first_rank);
  admitted.charter->set_ranks(2 * count);
  admitted.charter->set_relay(relay);
  proto::RequestBody body;  // by the user's clock, which is four minutes behind
  body.set_time_ms(kNow - 240'000);
  admitted.charter->set_ready_by_ms(kNow - 239'000);
  *body.mutable_submit()->mutable_charter() = *admitted.charter;
  admitted.submitted.mutable_request()->set_body(body.SerializeAsString());
  proto::Decision decision;
  decision.set_job_id("j");
  for (int node = 1; node <= count; ++node) {
    queue.SetAttached("n" + std::to_string(node), true);
    proto::Placement& place = *decision.mutable_start()->add_placement();
    place.set_node("n" + std::to_string(node));
    place.set_processes(1);
  }
  return queue.Accept(admitted, &decision, kNow);
}

// A part of two ranks on two nodes: ranks 2 and 3 of 4.
class QueuePartsTest : public ::testing::Test {
 protected:
  explicit QueuePartsTest(std::string relay = "") : relay_(std::move(relay)) {}
  void SetUp() override {
    started_ = AcceptPart(queue_, 2, 2, relay_);
    submitted_ = started_.events.front();
  }

  static proto::TaskKey Key(int task) {
    proto::TaskKey key;
    key.set_job_id("j");
    key.set_task(task);
    return key;
  }
  static proto::RankFence Given(const std::string& data) {
    proto::RankFence fence;
    fence.set_job_id("j");
    fence.mutable_fence()->set_id("pmi 0");
    fence.mutable_fence()->set_data(data);
    return fence;
  }
  static proto::Order Release() {
    proto::Order order;
    order.mutable_release()->set_process_mapping("(vector,(0,4,1))");
    return order;
  }
  static proto::AgentMessage::Exited Killed(int task, int signal) {
    proto::AgentMessage::Exited exited;
    *exited.mutable_task() = Key(task);
    exited.mutable_exit()->set_signal(signal);
    return exited;
  }
  // The kinds of messages that go out, KIND@NODE.
  static std::vector<std::string> Sent(const Effects& effects) {
    std::vector<std::string> words;
    for (const Effects::Outgoing& out : effects.messages) {
      words.push_back(
          out.message.GetDescriptor()->FindFieldByNumber(int(out.message.kind_case()))->name() +
          "@" + out.node);
    }
    return words;
  }
  const std::vector<proto::Report>& Reports() const { return queue_.Find("j")->part->reports; }
  void StandReady() {
    queue_.OnReady("n1", Key(0));
    queue_.OnReady("n2", Key(1));
  }

  const std::string relay_;  // where it meets ranks of other sites
  Queue queue_{TaskSettings(), 0};
  Effects started_;
  proto::JobEvent submitted_;
};

TEST_F(QueuePartsTest, ItsTasksAwaitTheirReleaseAndItIsReadyOnceAllAre) {
  EXPECT_TRUE(started_.messages[0].message.start().await_release());
  queue_.OnReady("n1", Key(0));
  EXPECT_THAT(Reports(), IsEmpty());

  queue_.OnReady("n2", Key(1));
  queue_.OnReady("n2", Key(1));

  ASSERT_EQ(Reports().size(), 1u);
  EXPECT_EQ(Reports()[0].ready().placement_size(), 2);
}

TEST_F(QueuePartsTest, IsReleasedByAnEventAndNotBeforeItIsReady) {
  EXPECT_FALSE(queue_.OnOrder("j", Release(), kNow).ok());
  StandReady();

  const auto effects = queue_.OnOrder("j", Release(), kNow);

  EXPECT_TRUE(effects->events[0].has_released());
  EXPECT_THAT(Sent(*effects), ElementsAre("release@n1", "release@n2"));
  EXPECT_THAT(Sent(*queue_.OnOrder("j", Release(), kNow)), IsEmpty()) << "said twice";
  EXPECT_THAT(Sent(queue_.OnReady("n2", Key(1))), ElementsAre("release@n2")) << "it has missed it";
}

TEST_F(QueuePartsTest, IsNotReleasedWithRanksThatThereCannotBe) {
  StandReady();
  for (const auto& [first, ranks] : std::vector<std::pair<int, int>>{{-1, 4}, {3, 4}, {INT_MAX, 4}, {0, INT_MAX}, {0, -4}}) {
    proto::Order order = Release();
    order.mutable_release()->set_first_rank(first);
    order.mutable_release()->set_ranks(ranks);
    EXPECT_TRUE(absl::IsInvalidArgument(queue_.OnOrder("j", order, kNow).status())) << first << " of " << ranks;
  }
  proto::Order order = Release();
  order.mutable_release()->set_first_rank(2);
  order.mutable_release()->set_ranks(4);
  EXPECT_TRUE(queue_.OnOrder("j", order, kNow).ok());
}

TEST_F(QueuePartsTest, JoinsWhatItsNodesGiveAndHandsBackTheResult) {
  StandReady();
  queue_.OnOrder("j", Release(), kNow).IgnoreError();
  queue_.OnFence("n2", Given("b\n"), kNow);
  EXPECT_EQ(Reports().size(), 1u);

  queue_.OnFence("n1", Given("a\n"), kNow);

  EXPECT_EQ(Reports()[1].fence().data(), "a\nb\n");
  proto::Order result;
  result.mutable_fence()->set_id("pmi 0");
  result.mutable_fence()->set_data("c\n");
  const auto effects = queue_.OnOrder("j", result, kNow);
  EXPECT_THAT(Sent(*effects), ElementsAre("fence@n1", "fence@n2"));
  EXPECT_EQ(effects->messages[0].message.fence().fence().data(), "c\na\nb\n");
  EXPECT_THAT(Sent(queue_.OnFence("n1", Given("a\n"), kNow)), ElementsAre("fence@n1"))
      << "it has missed it";
}

TEST_F(QueuePartsTest, WhatTheOthersGaveWaitsForItsOwnNodes) {
  StandReady();
  queue_.OnOrder("j", Release(), kNow).IgnoreError();
  proto::Order others;
  others.mutable_fence()->set_id("pmi 0");
  others.mutable_fence()->set_data("c\n");
  EXPECT_THAT(Sent(*queue_.OnOrder("j", others, kNow)), IsEmpty());
  EXPECT_THAT(Sent(queue_.OnFence("n2", Given("b\n"), kNow)), IsEmpty());

  const Effects effects = queue_.OnFence("n1", Given("a\n"), kNow);

  EXPECT_THAT(Sent(effects), ElementsAre("fence@n1", "fence@n2"));
  EXPECT_EQ(effects.messages[1].message.fence().fence().data(), "c\na\nb\n");
  EXPECT_EQ(Reports()[1].fence().data(), "a\nb\n") << "the others wait for that";
}

// It was killed between telling n1 and telling n2.
TEST_F(QueuePartsTest, AfterARestartWhoHasAResultGivesAgainForWhoHasNot) {
  StandReady();
  const auto released = queue_.OnOrder("j", Release(), kNow);
  Queue restarted(TaskSettings(), 0);
  for (const auto& events : {started_.events, released->events}) {
    for (const proto::JobEvent& event : events) {
      ASSERT_TRUE(restarted.Replay(event).ok());
    }
  }

  restarted.OnFence("n1", Given("a\n"), kNow);
  restarted.OnFence("n2", Given("b\n"), kNow);

  const auto& reports = restarted.Find("j")->part->reports;
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[1].fence().data(), "a\nb\n") << "its leader says the others' once more";
  proto::Order others;
  others.mutable_fence()->set_id("pmi 0");
  others.mutable_fence()->set_data("c\n");
  EXPECT_THAT(Sent(*restarted.OnOrder("j", others, kNow)), ElementsAre("fence@n1", "fence@n2"));
}

TEST_F(QueuePartsTest, ARankThatDiesIsReportedOnceAndEndsTheRest) {
  StandReady();
  queue_.OnOrder("j", Release(), kNow).IgnoreError();

  const Effects effects = queue_.OnExited("n2", Killed(1, 9), kNow);
  queue_.OnExited("n1", Killed(0, 15), kNow);

  EXPECT_THAT(Sent(effects), ElementsAre("kill@n1", "kill@n2"));
  ASSERT_EQ(Reports().size(), 3u);
  EXPECT_EQ(Reports()[1].failed().rank(), 3);
  EXPECT_EQ(Reports()[1].failed().node(), "n2");
  EXPECT_TRUE(Reports()[2].has_ended());
}

TEST_F(QueuePartsTest, ANodeThatIsDeclaredLostIsWhatFailed) {
  StandReady();
  queue_.OnOrder("j", Release(), kNow).IgnoreError();

  EXPECT_THAT(Sent(queue_.DeclareLost("n2", "node n2 was declared lost", kNow)), ElementsAre("kill@n1", "kill@n2"));
  queue_.OnExited("n1", Killed(0, 15), kNow);

  ASSERT_EQ(Reports().size(), 3u);
  EXPECT_EQ(Reports()[1].failed().rank(), 3);
  EXPECT_EQ(Reports()[1].failed().reason(), "node n2 was declared lost");
  EXPECT_TRUE(Reports()[2].has_ended());
}

TEST_F(QueuePartsTest, EndsIfItsLeaderDoesNotReleaseItInTime) {
  StandReady();
  EXPECT_THAT(Sent(queue_.EndUnreleased(kNow + 31'000)), IsEmpty());

  EXPECT_THAT(Sent(queue_.EndUnreleased(kNow + 31'001)), ElementsAre("kill@n1", "kill@n2"));
}

TEST_F(QueuePartsTest, EndsAtTheSameTimeAfterARestart) {
  Queue restarted(TaskSettings(), 0);
  ASSERT_TRUE(restarted.Replay(submitted_).ok());

  EXPECT_THAT(restarted.EndUnreleased(kNow + 31'000).events, IsEmpty());
  EXPECT_FALSE(restarted.EndUnreleased(kNow + 31'001).events.empty());
}

TEST_F(QueuePartsTest, AReleasedOneIsLeftAlone) {
  StandReady();
  queue_.OnOrder("j", Release(), kNow).IgnoreError();

  EXPECT_THAT(Sent(queue_.EndUnreleased(kNow + 50'000)), IsEmpty());
}

TEST_F(QueuePartsTest, EndsIfItsLeaderIsSilentForTooLong) {
  StandReady();
  queue_.SetLed("j", true);
  queue_.OnOrder("j", Release(), kNow).IgnoreError();
  EXPECT_THAT(Sent(queue_.EndUnled(0, kNow)), IsEmpty());
  queue_.SetLed("j", false);
  EXPECT_THAT(Sent(queue_.EndUnled(10'000, kNow)), IsEmpty());
  EXPECT_THAT(Sent(queue_.EndUnled(10'000 + 1'799'999, kNow)), IsEmpty());

  const Effects effects = queue_.EndUnled(10'000 + 1'800'000, kNow);

  EXPECT_THAT(Sent(effects), ElementsAre("kill@n1", "kill@n2"));
  EXPECT_THAT(Sent(queue_.EndUnled(10'000 + 1'900'000, kNow)), IsEmpty()) << "said twice";
  queue_.OnExited("n1", Killed(0, 15), kNow);
  queue_.OnExited("n2", Killed(1, 15), kNow);
  EXPECT_THAT(Reports().back().ended().reason(),
              testing::StartsWith("the leader of world-1 has been silent for more than 1800 s"));
}

TEST_F(QueuePartsTest, ALeaderThatComesBackInTimeCostsNothing) {
  StandReady();
  queue_.OnOrder("j", Release(), kNow).IgnoreError();
  for (int64_t steady_ms = 0; steady_ms < 18'000'000; steady_ms += 1'800'000) {
    EXPECT_THAT(Sent(queue_.EndUnled(steady_ms, kNow)), IsEmpty());
    EXPECT_THAT(Sent(queue_.EndUnled(steady_ms + 1'799'999, kNow)), IsEmpty());
    queue_.SetLed("j", true);
    queue_.SetLed("j", true);  // the next call stands before the last one is known to have broken
    queue_.SetLed("j", false);
    EXPECT_THAT(Sent(queue_.EndUnled(steady_ms + 100'000'000, kNow)), IsEmpty());
    queue_.SetLed("j", false);
  }
}

TEST_F(QueuePartsTest, WhatWasNotReleasedWaitsForItsLeaderAsLongAsItIsToStandReady) {
  StandReady();
  queue_.EndUnled(0, kNow);

  EXPECT_THAT(Sent(queue_.EndUnled(3'600'000, kNow)), IsEmpty());
}

// Of a world over several sites.
class WidePartsTest : public QueuePartsTest {
 protected:
  WidePartsTest() : QueuePartsTest("b-dmz:7514") {}
};

TEST_F(WidePartsTest, ANodeThatStaysAwayIsWhatFailed) {
  StandReady();
  queue_.OnOrder("j", Release(), kNow).IgnoreError();
  EXPECT_THAT(Sent(queue_.EndUnheard(0, kNow)), IsEmpty());
  queue_.SetAttached("n2", false);
  EXPECT_THAT(Sent(queue_.EndUnheard(1'000, kNow)), IsEmpty());
  EXPECT_THAT(Sent(queue_.EndUnheard(12'999, kNow)), IsEmpty());

  EXPECT_THAT(Sent(queue_.EndUnheard(13'000, kNow)), ElementsAre("kill@n1", "kill@n2"));
  EXPECT_THAT(Sent(queue_.EndUnheard(14'000, kNow)), IsEmpty()) << "said twice";
  queue_.OnExited("n1", Killed(0, 15), kNow);

  ASSERT_EQ(Reports().size(), 3u);
  EXPECT_EQ(Reports()[1].failed().rank(), 3);
  EXPECT_EQ(Reports()[1].failed().node(), "n2");
  EXPECT_EQ(Reports()[1].failed().reason(), "node n2 has been silent for more than 12 s");
  EXPECT_TRUE(Reports()[2].has_ended());
}

TEST_F(WidePartsTest, ANodeThatComesBackInTimeCostsNothing) {
  StandReady();
  queue_.OnOrder("j", Release(), kNow).IgnoreError();
  EXPECT_THAT(Sent(queue_.EndUnheard(0, kNow)), IsEmpty());
  for (int64_t steady_ms = 1'000; steady_ms < 100'000; steady_ms += 12'000) {
    queue_.SetAttached("n2", false);
    EXPECT_THAT(Sent(queue_.EndUnheard(steady_ms, kNow)), IsEmpty());
    EXPECT_THAT(Sent(queue_.EndUnheard(steady_ms + 11'999, kNow)), IsEmpty());
    queue_.SetAttached("n2", true);
  }
}

TEST_F(WidePartsTest, NodesHaveAMinuteMoreToComeBackToAQueueServerThatWasRestarted) {
  StandReady();
  queue_.OnOrder("j", Release(), kNow).IgnoreError();
  queue_.SetAttached("n2", false);

  EXPECT_THAT(Sent(queue_.EndUnheard(0, kNow)), IsEmpty());
  EXPECT_THAT(Sent(queue_.EndUnheard(71'999, kNow)), IsEmpty());
  EXPECT_THAT(Sent(queue_.EndUnheard(72'000, kNow)), ElementsAre("kill@n1", "kill@n2"));
}

TEST_F(WidePartsTest, BeforeTheReleaseNoNodeIsGivenUp) {
  StandReady();
  queue_.EndUnheard(0, kNow);
  queue_.SetAttached("n2", false);
  queue_.EndUnheard(1'000, kNow);

  EXPECT_THAT(Sent(queue_.EndUnheard(3'600'000, kNow)), IsEmpty());
}

TEST_F(QueuePartsTest, OfAWorldAtOneSiteNoNodeIsGivenUp) {
  StandReady();
  queue_.OnOrder("j", Release(), kNow).IgnoreError();
  queue_.EndUnheard(0, kNow);
  queue_.SetAttached("n2", false);
  queue_.EndUnheard(1'000, kNow);

  EXPECT_THAT(Sent(queue_.EndUnheard(3'600'000, kNow)), IsEmpty());
}

TEST(QueueParts, ACollectiveCostsAReportAPartHoweverManyNodesThatHas) {
  for (const int ranks : {2, 200}) {
    Queue queue(TaskSettings(), 0);
    AcceptPart(queue, 0, ranks, "b-dmz:7514");
    proto::TaskKey key;
    key.set_job_id("j");
    for (int task = 0; task < ranks; ++task) {
      key.set_task(task);
      queue.OnReady("n" + std::to_string(task + 1), key);
    }
    proto::Order release;
    release.mutable_release()->set_process_mapping("(vector,(0,4,1))");
    ASSERT_TRUE(queue.OnOrder("j", release, kNow).ok());
    const auto& reports = queue.Find("j")->part->reports;
    ASSERT_EQ(reports.size(), 1u);
    proto::RankFence given;
    given.set_job_id("j");
    given.mutable_fence()->set_id("pmi 0");
    given.mutable_fence()->set_data("x");
    for (int node = 1; node <= ranks; ++node) {
      queue.OnFence("n" + std::to_string(node), given, kNow);
    }
    ASSERT_EQ(reports.size(), 2u) << ranks << " ranks";
    EXPECT_EQ(reports[1].fence().data(), std::string(ranks, 'x'));
  }
}

TEST_F(QueuePartsTest, NobodyElsesTaskOrNodeIsListenedTo) {
  queue_.OnReady("n2", Key(0));
  queue_.OnReady("n1", Key(7));
  queue_.OnFence("n3", Given("x"), kNow);

  EXPECT_THAT(Reports(), IsEmpty());
}

}  // namespace
}  // namespace sekisho::qserver
