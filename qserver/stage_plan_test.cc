// SPDX-License-Identifier: Apache-2.0
#include "qserver/stage_plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/refusal.h"
#include "qserver/cache_plan.h"
#include "qserver/stage_order.h"
#include "rsl/evaluator.h"
#include "rsl/parser.h"

namespace sekisho::qserver {
namespace {

constexpr char kHome[] = "/home/taro";

ClientFiles Files(const std::vector<std::string>& urls) {
  ClientFiles files;
  for (const std::string& url : urls) {
    auto& file = *files.Add();
    file.set_url(url);
    file.set_size(1000);
    file.set_sha256(std::string(32, 'x'));
    file.set_mode(0755);
  }
  return files;
}

absl::StatusOr<std::vector<StageIn>> Plan(const std::string& rsl, const ClientFiles& files,
                                          const StagingRules& rules = {}) {
  auto spec = rsl::Evaluate(*rsl::Parse(rsl), {});
  auto job = *rsl::Describe(*spec);
  if (LocalizeStaged(*spec, job, kHome, "j1")) {
    job = *rsl::Describe(*spec);
  }
  return PlanStageIn(job, files, kHome, rules);
}

TEST(StagePlan, PutsRelativePathsIntoTheJobsDirectory) {
  const auto plan = Plan("&(executable=x)(directory=/home/taro/run)(file_stage_in=(in.dat in.dat)(/a/b sub/c))",
                         Files({"in.dat", "/a/b"}));

  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->size(), 2u);
  EXPECT_EQ((*plan)[0].target, "/home/taro/run/in.dat");
  EXPECT_EQ((*plan)[1].target, "/home/taro/run/sub/c");
  EXPECT_EQ((*plan)[1].file, 1);
  EXPECT_EQ(Plan("&(executable=x)(file_stage_in=(in.dat y))", Files({"in.dat"}))->at(0).target, "/home/taro/y");
}

TEST(StagePlan, StagesProgramAndInputIntoTheJobsOwnDirectory) {
  const auto plan = Plan("&(executable=client:///h/a.out)(stdin=client://in)(file_stage_in=(x x))",
                         Files({"x", "client:///h/a.out", "client://in"}));

  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->size(), 3u);
  EXPECT_EQ((*plan)[1].target, "/home/taro/.sekisho/jobs/j1/bin/a.out");
  EXPECT_EQ((*plan)[1].mode, 0700u);
  EXPECT_EQ((*plan)[2].target, "/home/taro/.sekisho/jobs/j1/stdin");
}

TEST(StagePlan, RefusesAFileThatTheSignedRequestDoesNotName) {
  const absl::Status status = Plan("&(executable=x)(file_stage_in=(a b))", Files({"c"})).status();
  EXPECT_EQ(GramCode(status), 141);
  EXPECT_THAT(Message(status), testing::HasSubstr("does not say what \"a\" is"));
  EXPECT_EQ(GramCode(Plan("&(executable=client://a)", {}).status()), 43);
  EXPECT_EQ(GramCode(Plan("&(executable=x)(stdin=client://a)", {}).status()), 44);

  ClientFiles no_sum = Files({"a"});
  no_sum[0].set_sha256("short");
  EXPECT_EQ(GramCode(Plan("&(executable=x)(file_stage_in=(a b))", no_sum).status()), 141);
}

TEST(StagePlan, RefusesPathsThatLeadOut) {
  for (const char* const path : {"../x", "/etc/cron.d/x", "a/../../x", "/home/tarot/x", "/home/taro", "."}) {
    const absl::Status status =
        Plan(fmt::format("&(executable=x)(file_stage_in=(a \"{}\"))", path), Files({"a"})).status();
    EXPECT_EQ(GramCode(status), 141) << path;
  }
  EXPECT_TRUE(Plan("&(executable=x)(file_stage_in=(a /scratch/x))", Files({"a"}), {.roots = {"/scratch"}}).ok());
  EXPECT_FALSE(Plan("&(executable=x)(directory=/tmp)(file_stage_in=(a x))", Files({"a"})).ok());
}

TEST(StagePlan, RefusesTwoFilesForOnePathAndFilesThatAreTooLarge) {
  EXPECT_FALSE(Plan("&(executable=x)(file_stage_in=(a x)(b ./x))", Files({"a", "b"})).ok());
  EXPECT_FALSE(Plan("&(executable=x)(file_stage_in=(a x))", Files({"a"}), {.file_bytes_max = 999}).ok());
}

TEST(StagePlan, RefusesSourcesThatNobodyFetches) {
  EXPECT_FALSE(Plan("&(executable=x)(file_stage_in=(gsiftp://h/a x))", Files({"gsiftp://h/a"})).ok());
}

rsl::JobDescription Described(const std::string& rsl) {
  const auto job = rsl::ParseAndDescribe(rsl, {});
  EXPECT_TRUE(job.ok()) << rsl;
  return *job;
}

TEST(StageOutPlan, KeepsForTheClientAndCopiesAtTheSite) {
  const auto plan = PlanStageOut(Described("&(executable=x)(directory=run)(file_stage_out=(out client:///home/taro/o)"
                                           "(/home/alice/log file:///home/alice/old/log))"),
                                 "/home/alice", "j", {});

  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ((*plan)[0].source, "/home/alice/run/out");
  EXPECT_EQ((*plan)[0].target, "/home/alice/.sekisho/jobs/j/out/0");
  EXPECT_TRUE((*plan)[0].is_kept);
  EXPECT_EQ((*plan)[1].target, "/home/alice/old/log");
  EXPECT_FALSE((*plan)[1].is_kept);
}

TEST(StageOutPlan, PutsAStreamTogetherForEachOfItsDestinations) {
  const auto plan = PlanStageOut(Described("&(executable=x)(directory=run)(file_stage_out=(a https://h/a))"
                                           "(stdout=(https://h/o)(o.txt)(client:///o))(stderr=e.txt)"),
                                 "/home/alice", "j", {});

  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->size(), 4u);
  EXPECT_EQ((*plan)[0].source, "/home/alice/run/a");
  EXPECT_EQ((*plan)[0].target, "");
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_EQ((*plan)[i].stream, 0);
    EXPECT_EQ((*plan)[i].source, "/home/alice/.sekisho/jobs/j/stdout");
  }
  EXPECT_EQ((*plan)[1].target, "");
  EXPECT_EQ((*plan)[2].target, "/home/alice/run/o.txt");
  EXPECT_EQ((*plan)[3].target, "/home/alice/.sekisho/jobs/j/out/3");
  EXPECT_TRUE((*plan)[3].is_kept);
  EXPECT_FALSE(HasStageOut(Described("&(executable=x)(stdout=o)(stderr=client:///dev/stderr)")));
  EXPECT_TRUE(HasStageOut(Described("&(executable=x)(stdout=client:///o)")));
}

TEST(StageOutPlan, ARedirectedStreamGoesByItsOwnNumbers) {
  const rsl::Redirections redirections = {rsl::Redirection{{"https://new/o", "client:///o"}, 5, 7}};
  const auto plan = PlanStageOut(Described("&(executable=x)(stdout=(client:///old)(https://old/o))(stderr=client:///e)"),
                                 "/home/alice", "j", {}, redirections);

  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->size(), 3u);
  EXPECT_EQ((*plan)[0].number, 7);
  EXPECT_EQ((*plan)[0].destination, "https://new/o");
  EXPECT_EQ((*plan)[0].position, 5u);
  EXPECT_EQ((*plan)[1].target, "/home/alice/.sekisho/jobs/j/out/8");
  EXPECT_EQ((*plan)[2].target, "/home/alice/.sekisho/jobs/j/out/2");
}

TEST(StagePlan, KeepsItsFilesWhereGassCacheSays) {
  const auto place = [](const std::string& clause) {
    return PlanCache(Described("&(executable=x)" + clause), "/home/alice", {.roots = {"/scratch"}});
  };

  EXPECT_EQ(*place(""), "");
  EXPECT_EQ(*place("(gass_cache=c)"), "/home/alice/c/.sekisho/cache");
  EXPECT_EQ(*place("(gass_cache=/scratch/alice)"), "/scratch/alice/.sekisho/cache");
  EXPECT_EQ(GramCode(place("(gass_cache=/tmp)").status()), 149);
  EXPECT_EQ(GramCode(place("(gass_cache=../bob)").status()), 149);
}

TEST(StageOutPlan, TakesTheJobsOwnStreamsByTheirNamesInTheCache) {
  const auto plan = [](const std::string& from) {
    return PlanStageOut(Described("&(executable=x)(file_stage_out=(x-gass-cache://https://h:2119/" + from + " b))"), "/home/alice",
                        "j", {});
  };

  ASSERT_TRUE(plan("j/stderr").ok());
  EXPECT_EQ(plan("j/stderr")->at(0).source, "/home/alice/.sekisho/jobs/j/stderr");
  EXPECT_TRUE(plan("j/stderr")->at(0).is_kept);
  EXPECT_EQ(GramCode(plan("other/stderr").status()), 143);
  EXPECT_EQ(GramCode(plan("j/file").status()), 143);
}

TEST(StageOutPlan, RefusesWhatLeadsOut) {
  EXPECT_FALSE(PlanStageOut(Described("&(executable=x)(file_stage_out=(/etc/passwd client:///p))"), "/home/alice", "j", {}).ok());
  EXPECT_FALSE(PlanStageOut(Described("&(executable=x)(file_stage_out=(a file:///tmp/p))"), "/home/alice", "j", {}).ok());
  const auto refused = PlanStageOut(Described("&(executable=x)(stderr=(a)(file:///tmp/p))"), "/home/alice", "j", {});
  EXPECT_EQ(GramCode(refused.status()), 63);
  EXPECT_THAT(Message(refused.status()), testing::StartsWith("stderr: expected a path below /home/alice"));
  EXPECT_FALSE(PlanStageOut(Described("&(executable=x)(stdout=(../a)(b))"), "/home/alice", "j", {}).ok());
  EXPECT_FALSE(PlanCleanUp(Described("&(executable=x)(file_clean_up=../bob/x)"), "/home/alice", {}).ok());
  EXPECT_FALSE(PlanScratch(Described("&(executable=x)(scratch_dir=/tmp)"), "/home/alice", "j", {}).ok());
  EXPECT_EQ(*PlanScratch(Described("&(executable=x)(scratch_dir=/s)"), "/home/alice", "j", {.roots = {"/s"}}), "/s/j");
}

TEST(StagePlan, TakesFilesOfTheSiteAndOfWebServersWithoutAClient) {
  const auto plan = PlanStageIn(Described("&(executable=/home/alice/p)(file_stage_in=(https://h/p p)(file:///home/alice/in d))"
                                          "(file_stage_in_shared=(http://h/data data))"),
                                {}, "/home/alice", {.roots = {}, .file_bytes_max = 9});

  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  ASSERT_EQ(plan->size(), 3u);
  const StagerOrder program = OrderFor((*plan)[0], {}, {.roots = {}, .file_bytes_max = 9});
  EXPECT_EQ(program.fetch().url(), "https://h/p");
  EXPECT_EQ(program.fetch().mode(), 0700u);
  EXPECT_EQ(program.fetch().bytes_most(), 9u);
  const StagerOrder copied = OrderFor((*plan)[1], {}, {});
  EXPECT_EQ(copied.copy().from(), "/home/alice/in");
  EXPECT_EQ(copied.copy().to(), "/home/alice/d");
  EXPECT_TRUE(OrderFor((*plan)[2], {}, {}).fetch().link());
}

TEST(StagePlan, RefusesFilesOfTheSiteThatAreNobodysAndSchemesThatNobodyKnows) {
  const auto plan = [](const char* from) {
    return PlanStageIn(Described(std::string("&(executable=x)(file_stage_in=(") + from + " y))"), {}, "/home/alice", {});
  };

  EXPECT_FALSE(plan("file:///etc/shadow").ok());
  EXPECT_FALSE(plan("file:///home/alice/../bob/x").ok());
  EXPECT_FALSE(plan("gsiftp://h/x").ok());
  EXPECT_FALSE(plan("client:///x").ok());  // the request does not say what it is
}

}  // namespace
}  // namespace sekisho::qserver
