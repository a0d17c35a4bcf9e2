// SPDX-License-Identifier: Apache-2.0
#include "rsl/outgoing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::rsl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

JobDescription Job(const std::string& clauses) {
  const auto job = ParseAndDescribe("&(executable=x)" + clauses, UnknownSiteVariables());
  EXPECT_TRUE(job.ok()) << clauses;
  return *job;
}

TEST(Outgoing, APathAloneIsWrittenByTheTasks) {
  const JobDescription job = Job("(stdout=out tag)(stderr=/dev/null)");

  EXPECT_EQ(WrittenByTasks(job.standard_output), "out");
  EXPECT_EQ(WrittenByTasks(job.standard_error), "/dev/null");
  EXPECT_THAT(OutgoingOf(job), IsEmpty());
  EXPECT_THAT(ShownAs(job), ElementsAre(IsEmpty(), IsEmpty()));
}

TEST(Outgoing, WhatIsNotGivenIsShown) {
  EXPECT_THAT(ShownAs(Job("")), ElementsAre(ElementsAre(1), ElementsAre(2)));
  EXPECT_EQ(WrittenByTasks(Job("").standard_output), "");
}

TEST(Outgoing, GlobusrunsOwnStandardOutputIsShownAsItComes) {
  const JobDescription job = Job("(stdout=$(GLOBUSRUN_GASS_URL)/dev/stdout)(stderr=$(GLOBUSRUN_GASS_URL)/dev/stdout)");

  EXPECT_THAT(OutgoingOf(job), IsEmpty());
  EXPECT_EQ(WrittenByTasks(job.standard_output), "");
  EXPECT_THAT(ShownAs(job), ElementsAre(ElementsAre(1), ElementsAre(1)));
}

TEST(Outgoing, EachDestinationGetsTheStreamBehindTheFiles) {
  const JobDescription job =
      Job("(stdout=(https://h/x)(out t)(client:///dev/stdout)(/dev/null))(stderr=client:///e)(file_stage_out=(a b))");

  EXPECT_THAT(OutgoingOf(job), ElementsAre(Outgoing{"file_stage_out", kNoStream, "a", "b"},
                                           Outgoing{"stdout", 0, "", "https://h/x", 1}, Outgoing{"stdout", 0, "", "out", 2},
                                           Outgoing{"stderr", 1, "", "client:///e", 3}));
  EXPECT_EQ(WrittenByTasks(job.standard_output), "");
  EXPECT_THAT(ShownAs(job), ElementsAre(ElementsAre(1), IsEmpty()));
}

TEST(Outgoing, WhatIsToBeInTheCacheIsKeptAndNotSent) {
  const JobDescription job = Job("(stdout=x-gass-cache://https://h:2119/j/stdout tag)");

  EXPECT_EQ(WrittenByTasks(job.standard_output), "");
  EXPECT_THAT(OutgoingOf(job), IsEmpty());
  EXPECT_THAT(ShownAs(job), ElementsAre(IsEmpty(), ElementsAre(2)));
  EXPECT_THAT(Unsupported(job), IsEmpty());
  EXPECT_EQ(Unsupported(Job("(stdin=x-gass-cache://a)")).size(), 1u);
}

TEST(Outgoing, AStreamIsAFileToStageOutByItsNameInTheCache) {
  const std::string out = "x-gass-cache://https://h:2119/j/stdout";
  EXPECT_THAT(OutgoingOf(Job("(file_stage_out=(" + out + " o))")),
              ElementsAre(Outgoing{"file_stage_out", 0, out, "o"}));
  EXPECT_THAT(OutgoingOf(Job("(stdout=own)(file_stage_out=(" + out + " o))")),
              ElementsAre(Outgoing{"file_stage_out", kNoStream, "own", "o"}));
}

TEST(Outgoing, ARedirectionTakesTheStreamsPlaceUnderNumbersOfItsOwn) {
  const JobDescription job = Job("(stdout=(https://h/x)(out))(stderr=client:///e)(file_stage_out=(a b))");
  const Redirections none;
  EXPECT_EQ(NextNumber(job, none), 4);

  const Redirections once = {Redirection{{"client:///dev/stdout", "https://h/y", "out2"}, 7, 4}};
  EXPECT_THAT(OutgoingOf(job, once), ElementsAre(Outgoing{"file_stage_out", kNoStream, "a", "b"},
                                                 Outgoing{"stdout", 0, "", "https://h/y", 4, 7},
                                                 Outgoing{"stdout", 0, "", "out2", 5, 7},
                                                 Outgoing{"stderr", 1, "", "client:///e", 3}));
  EXPECT_EQ(NextNumber(job, once), 6);

  const Redirections twice = {Redirection{{}, 0, 6}, Redirection{{"/dev/null", "https://h/e"}, 0, 6}};
  EXPECT_THAT(OutgoingOf(job, twice), ElementsAre(Outgoing{"file_stage_out", kNoStream, "a", "b"},
                                                  Outgoing{"stderr", 1, "", "https://h/e", 6}));
  EXPECT_EQ(NextNumber(job, twice), 7);
}

TEST(Outgoing, AFileGetsAStreamWhole) {
  for (const char* const file : {"out", "/home/taro/out", "file:///o", "client:///o"}) {
    EXPECT_TRUE(IsFile(file)) << file;
  }
  for (const char* const none : {"https://h/o", "client:///dev/stderr", "/dev/null", "x-gass-cache://o"}) {
    EXPECT_FALSE(IsFile(none)) << none;
  }
}

TEST(Outgoing, OnlyWhatTheRequestSendsToTheClientIsForIt) {
  EXPECT_TRUE(IsForClient({"file_stage_out", kNoStream, "a", "b"}));
  EXPECT_TRUE(IsForClient({"stdout", 0, "", "client:///b"}));
  EXPECT_FALSE(IsForClient({"stdout", 0, "", "b"}));
  EXPECT_FALSE(IsForClient({"file_stage_out", kNoStream, "a", "file:///b"}));
  EXPECT_FALSE(IsForClient({"file_stage_out", kNoStream, "a", "https://h/b"}));
}

}  // namespace
}  // namespace sekisho::rsl
