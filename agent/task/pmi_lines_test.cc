// SPDX-License-Identifier: Apache-2.0
#include "agent/task/pmi_lines.h"

#include <gtest/gtest.h>

namespace sekisho::agent::task {
namespace {

class PmiLinesTest : public testing::Test {
 protected:
  // What has been put to the agent since.
  std::string Sent() {
    std::string sent = lines_.ToAgent();
    lines_.Sent(sent.size());
    return sent;
  }
  PmiLines lines_{"sekisho job 3 secret"};
};

TEST_F(PmiLinesTest, SaysWhoItIsAndWhatTheRankSays) {
  lines_.TakeFromRank("cmd=init\ncmd=get_");
  lines_.Connect();

  EXPECT_EQ(Sent(), "sekisho job 3 secret 1\ncmd=init\n");
  EXPECT_EQ(lines_.TakeFromAgent("1 cmd=response_to_init rc=0\n"), "cmd=response_to_init rc=0\n");
  EXPECT_FALSE(lines_.HasUnanswered());
  lines_.TakeFromRank("maxes\n");
  EXPECT_EQ(Sent(), "cmd=get_maxes\n");
}

TEST_F(PmiLinesTest, SaysAgainToTheNextAgentWhatHasNoAnswer) {
  lines_.TakeFromRank("cmd=init\n");
  lines_.Connect();
  lines_.TakeFromAgent("1 cmd=response_to_init rc=0\n");
  lines_.TakeFromRank("cmd=barrier_in\ncmd=inside rank=2\n");
  Sent();
  EXPECT_EQ(lines_.TakeFromAgent("3 cmd=barr"), "");

  lines_.Connect();

  EXPECT_EQ(Sent(), "sekisho job 3 secret 2\ncmd=barrier_in\ncmd=inside rank=2\n");
  EXPECT_EQ(lines_.TakeFromAgent("2 cmd=barrier_out\n"), "cmd=barrier_out\n");
  lines_.Connect();
  EXPECT_EQ(Sent(), "sekisho job 3 secret 3\ncmd=inside rank=2\n") << "the agent may not have come to it";
}

TEST_F(PmiLinesTest, AnAnswerIsOfAllLinesUpToItsNumber) {
  lines_.TakeFromRank("cmd=inside rank=1\ncmd=inside rank=2\ncmd=put\n");

  EXPECT_EQ(lines_.TakeFromAgent("3 cmd=put_result rc=0\n"), "cmd=put_result rc=0\n");
  EXPECT_FALSE(lines_.HasUnanswered());
  EXPECT_EQ(lines_.TakeFromAgent("9 cmd=x\n"), "cmd=x\n") << "more than was said";
  lines_.TakeFromRank("cmd=finalize\n");
  lines_.Connect();
  EXPECT_EQ(Sent(), "sekisho job 3 secret 4\ncmd=finalize\n");
}

TEST_F(PmiLinesTest, UnderstandsAnAgentThatCountsNothing) {
  lines_.TakeFromRank("cmd=init\n");

  EXPECT_EQ(lines_.TakeFromAgent("cmd=response_to_init rc=0\n"), "cmd=response_to_init rc=0\n");
  EXPECT_FALSE(lines_.HasUnanswered());
}

TEST_F(PmiLinesTest, IsFullWhenMuchHasNoAnswer) {
  const std::string line(1023, 'x');
  for (int i = 0; i < 65 && !lines_.IsFull(); ++i) {
    lines_.TakeFromRank(line + "\n");
  }
  EXPECT_TRUE(lines_.IsFull());
  lines_.TakeFromAgent("40 ok\n");
  EXPECT_FALSE(lines_.IsFull());
}

TEST_F(PmiLinesTest, RefusesALineThatTheAgentWouldNotTakeAlsoIfItComesWhole) {
  lines_.TakeFromRank(std::string(8191, 'x') + "\ncmd=init\n");
  EXPECT_FALSE(lines_.IsRefused());

  lines_.TakeFromRank(std::string(8192, 'x') + "\n");

  EXPECT_TRUE(lines_.IsRefused()) << "else it would be said to agent after agent";
}

TEST_F(PmiLinesTest, RefusesALineWithoutEndAndWhomTheAgentRefuses) {
  lines_.TakeFromRank(std::string(8192, 'x'));
  EXPECT_TRUE(lines_.IsRefused());
  EXPECT_FALSE(lines_.HasUnanswered());

  PmiLines other("sekisho job 4 secret");
  other.TakeFromRank("GET / HTTP/1.0\n");
  EXPECT_EQ(other.TakeFromAgent("end\n"), "");
  EXPECT_TRUE(other.IsRefused());
  other.TakeFromRank("more\n");
  EXPECT_FALSE(other.HasUnanswered());
}

}  // namespace
}  // namespace sekisho::agent::task
