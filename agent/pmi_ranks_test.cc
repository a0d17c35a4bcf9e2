// SPDX-License-Identifier: Apache-2.0
#include "agent/pmi_ranks.h"

#include <gtest/gtest.h>

namespace sekisho::agent {
namespace {

// A world of four ranks; 2 and 3 are here.
class PmiRanksTest : public testing::Test {
 protected:
  PmiRanks::Effects Say(int rank, const std::string& line) { return ranks_.OnLine(rank, ++lines_[rank], line); }
  std::string Ask(int rank, const std::string& line) {
    const auto effects = Say(rank, line);
    return effects.lines.size() == 1 && effects.lines[0].first == rank ? effects.lines[0].second
                                                                       : effects.complaint;
  }
  PmiRanks ranks_{4, 2, "world-7"};
  std::map<int, uint64_t> lines_;
};

TEST_F(PmiRanksTest, AnswersTheQuestionsOfInit) {
  EXPECT_EQ(Ask(2, "cmd=init pmi_version=1 pmi_subversion=1"),
            "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n");
  EXPECT_EQ(Ask(2, "cmd=get_maxes"), "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n");
  EXPECT_EQ(Ask(2, "cmd=get_my_kvsname"), "cmd=my_kvsname rc=0 kvsname=world-7\n");
  EXPECT_EQ(Ask(2, "cmd=get_universe_size"), "cmd=universe_size rc=0 size=4\n");
  EXPECT_EQ(Ask(2, "cmd=finalize"), "cmd=finalize_ack rc=0\n");
}

TEST_F(PmiRanksTest, GivesToTheFenceOnceAllItsRanksHaveCome) {
  Ask(2, "cmd=put kvsname=world-7 key=P2 value=here");

  EXPECT_FALSE(Say(2, "cmd=barrier_in").fence);
  const auto fence = Say(3, "cmd=barrier_in").fence;

  ASSERT_TRUE(fence);
  EXPECT_EQ(fence->id(), "pmi 0");
  EXPECT_EQ(fence->data(), "P2=here\n");
  EXPECT_EQ(ranks_.pending()->id(), "pmi 0");
  EXPECT_FALSE(ranks_.last());
}

TEST_F(PmiRanksTest, LetsThemGoAndKnowsWhatTheOthersPutOnceTheFenceIsDone) {
  Say(2, "cmd=barrier_in");
  Say(3, "cmd=barrier_in");
  EXPECT_EQ(Ask(3, "cmd=get kvsname=world-7 key=P0"),
            "cmd=get_result rc=-1 msg=no_such_key value=unknown\n");

  proto::Fence result;
  result.set_id("pmi 0");
  result.set_data("P0=there and back\n");
  const auto effects = ranks_.OnFenceDone(result);

  EXPECT_EQ(effects.lines.size(), 2u);
  EXPECT_EQ(effects.lines[0].second, "cmd=barrier_out rc=0\n");
  EXPECT_EQ(Ask(3, "cmd=get kvsname=world-7 key=P0"), "cmd=get_result rc=0 value=there and back\n");
  EXPECT_FALSE(ranks_.pending());
  EXPECT_EQ(ranks_.last()->id(), "pmi 0");
  EXPECT_TRUE(ranks_.OnFenceDone(result).lines.empty()) << "said twice";
}

TEST_F(PmiRanksTest, ABarrierThatIsSaidAgainIsEnteredOnce) {
  Say(2, "cmd=barrier_in");
  EXPECT_TRUE(ranks_.OnLine(2, lines_[2], "cmd=barrier_in").lines.empty()) << "it waits still";
  EXPECT_TRUE(Say(3, "cmd=barrier_in").fence);
  EXPECT_FALSE(ranks_.OnLine(3, lines_[3], "cmd=barrier_in").fence);
  proto::Fence result;
  result.set_id("pmi 0");
  ranks_.OnFenceDone(result);

  const auto again = ranks_.OnLine(2, lines_[2], "cmd=barrier_in");

  ASSERT_EQ(again.lines.size(), 1u) << "it may not have read that it is over";
  EXPECT_EQ(again.lines[0], std::pair(2, std::string("cmd=barrier_out rc=0\n")));
  ranks_.OnLine(3, lines_[3], "cmd=barrier_in");
  EXPECT_FALSE(ranks_.pending()) << "nobody is in the next one";
}

TEST_F(PmiRanksTest, WhatElseIsSaidAgainDoesNoHarm) {
  for (int times = 0; times < 2; ++times) {
    EXPECT_EQ(ranks_.OnLine(2, 1, "cmd=put kvsname=w key=P2 value=here").lines[0].second, "cmd=put_result rc=0 msg=success\n");
    EXPECT_EQ(ranks_.OnLine(2, 2, "cmd=get kvsname=w key=P2").lines[0].second, "cmd=get_result rc=0 value=here\n");
    EXPECT_EQ(ranks_.OnLine(2, 3, "cmd=finalize").lines[0].second, "cmd=finalize_ack rc=0\n");
  }
  ranks_.OnLine(2, 4, "cmd=barrier_in");
  EXPECT_EQ(ranks_.OnLine(3, 1, "cmd=barrier_in").fence->data(), "P2=here\n");
}

TEST_F(PmiRanksTest, QuestionsAreNoNews) {
  EXPECT_FALSE(Say(2, "cmd=get kvsname=w key=P2").is_news);
  EXPECT_FALSE(Say(2, "cmd=get_maxes").is_news);
  EXPECT_TRUE(Say(2, "cmd=init pmi_version=1 pmi_subversion=1").is_news);
  EXPECT_TRUE(Say(2, "cmd=barrier_in").is_news);
}

TEST_F(PmiRanksTest, ServesTheProcessMapping) {
  ranks_.SetProcessMapping("(vector,(0,2,2))");

  EXPECT_EQ(Ask(2, "cmd=get kvsname=world-7 key=PMI_process_mapping"),
            "cmd=get_result rc=0 value=(vector,(0,2,2))\n");
}

TEST_F(PmiRanksTest, ARankIsInsideFromInitToFinalizeAndAbortsWithItsCode) {
  EXPECT_FALSE(ranks_.IsInside(2));
  Ask(2, "cmd=init pmi_version=1 pmi_subversion=1");
  EXPECT_TRUE(ranks_.IsInside(2));
  EXPECT_FALSE(ranks_.AbortCode(2));
  EXPECT_EQ(Say(2, "cmd=abort exitcode=7").aborted, 2);
  EXPECT_EQ(ranks_.AbortCode(2), 7);
  EXPECT_FALSE(ranks_.AbortCode(3));
  EXPECT_TRUE(ranks_.IsInside(2));
  Ask(2, "cmd=finalize");
  EXPECT_FALSE(ranks_.IsInside(2));
}

TEST_F(PmiRanksTest, TellsARankItsPlace) {
  EXPECT_EQ(Ask(3, "cmd=place"), "cmd=place_result rc=0 rank=3 size=4\n");
}

TEST_F(PmiRanksTest, OneMaySpeakForAllOfItsNode) {
  EXPECT_EQ(Ask(2, "cmd=represent"), "cmd=represent_result rc=0\n");

  EXPECT_TRUE(Say(2, "cmd=barrier_in").fence) << "rank 3 does not come itself";
  Say(2, "cmd=inside rank=3");
  EXPECT_TRUE(ranks_.IsInside(3));
  EXPECT_EQ(Say(2, "cmd=abort exitcode=9 rank=3").aborted, 3);
  EXPECT_EQ(ranks_.AbortCode(3), 9);
  EXPECT_EQ(Ask(2, "cmd=outside rank=3"), "cmd=outside_result rc=0\n") << "it waits for that";
  EXPECT_FALSE(ranks_.IsInside(3));
}

TEST_F(PmiRanksTest, HowARankLeftIsTheSpeakersToSayAsLongAsItIsThere) {
  Ask(3, "cmd=init pmi_version=1 pmi_subversion=1");
  EXPECT_FALSE(ranks_.IsLeaving(3)) << "it speaks for itself";
  Ask(2, "cmd=represent");
  Say(2, "cmd=inside rank=2");

  EXPECT_TRUE(ranks_.IsLeaving(3));
  EXPECT_TRUE(Say(2, "cmd=lost rank=3").has_left);
  EXPECT_FALSE(ranks_.IsLeaving(3));
  EXPECT_TRUE(ranks_.IsInside(3));
  EXPECT_TRUE(ranks_.IsLeaving(2));
  ranks_.OnGone(3);
  EXPECT_TRUE(ranks_.IsLeaving(2));
  ranks_.OnGone(2);
  EXPECT_FALSE(ranks_.IsLeaving(2));
}

TEST_F(PmiRanksTest, ClosesOnWhatIsNoPmiAndRefusesKeysThatAreTooLong) {
  EXPECT_EQ(Ask(2, "GET / HTTP/1.0"), "what it says is no PMI-1");
  EXPECT_EQ(Ask(2, "cmd=put kvsname=w key=" + std::string(65, 'k') + " value=1"),
            "cmd=put_result rc=-1 msg=bad_key_or_value\n");
}

}  // namespace
}  // namespace sekisho::agent
