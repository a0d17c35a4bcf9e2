// SPDX-License-Identifier: Apache-2.0
#include "agent/task/spec.h"

#include <gtest/gtest.h>

#include "agent/task/record.h"

namespace sekisho::agent::task {
namespace {

Spec FullSpec() {
  Spec spec;
  spec.job_id = "j1";
  spec.task = 7;
  spec.boot_id = "boot";
  spec.account = "alice";
  spec.uid = 4000000000U;
  spec.gid = 100;
  spec.groups = {100, 27};
  spec.argument = {"/bin/echo", "", "two\nlines", "a=b"};
  spec.environment = {"PATH=/bin", "EMPTY="};
  spec.directory = "/home/alice";
  spec.umask = 077;
  spec.stdin_path = "in";
  spec.stdout_path = "out";
  spec.has_input = true;
  spec.wall_limit_ms = 1500;
  spec.launch_token = "secret";
  spec.grouping = Grouping::kV2;
  spec.cgroup = "/sys/fs/cgroup/x";
  return spec;
}

TEST(Spec, SurvivesItsRecord) {
  EXPECT_EQ(DecodeSpec(EncodeSpec(FullSpec())), FullSpec());
  EXPECT_EQ(DecodeSpec(EncodeSpec(Spec{.job_id = "a"})), Spec{.job_id = "a"});
}

TEST(Spec, RefusesMissingAndOutOfRangeFields) {
  Fields fields = *Decode(EncodeSpec(FullSpec()));
  const auto with = [&](const char* key, const char* value) {
    Fields changed = fields;
    for (auto& field : changed) {
      if (field.first == key) {
        field.second = value;
      }
    }
    return DecodeSpec(Encode(changed));
  };

  EXPECT_TRUE(with("uid", "5"));
  EXPECT_FALSE(with("uid", "-1"));
  EXPECT_FALSE(with("uid", "99999999999"));
  EXPECT_FALSE(with("task", "-1"));
  EXPECT_FALSE(with("group", "x"));
  EXPECT_FALSE(with("grouping", "v3"));
  EXPECT_FALSE(with("job", "../etc"));
  fields.erase(fields.begin() + 1);
  EXPECT_FALSE(DecodeSpec(Encode(fields)));
}

TEST(Spec, RunningAndEndedSurviveTheirRecords) {
  const Running running{12, 13, 1234567890123};
  const Ended ended{.code = 3, .signal = 9, .gram_code = 17, .reason = "why", .time_ms = 5};

  EXPECT_EQ(DecodeRunning(EncodeRunning(running)), running);
  EXPECT_EQ(DecodeEnded(EncodeEnded(ended)), ended);
  EXPECT_FALSE(DecodeRunning(""));
  EXPECT_FALSE(DecodeEnded(""));
}

TEST(Spec, JobIdsAndFileNamesCannotLeaveTheirDirectory) {
  EXPECT_TRUE(IsJobId("k3v9z0"));
  EXPECT_FALSE(IsJobId(""));
  EXPECT_FALSE(IsJobId("A"));
  EXPECT_FALSE(IsJobId(".."));
  EXPECT_FALSE(IsJobId("a/b"));
  EXPECT_FALSE(IsJobId(std::string("a\0b", 3)));
  EXPECT_FALSE(IsJobId(std::string(33, 'a')));
  EXPECT_TRUE(IsFileName("machines.Linux-1"));
  EXPECT_FALSE(IsFileName(".."));
  EXPECT_FALSE(IsFileName(".hidden"));
  EXPECT_FALSE(IsFileName("a/b"));
  EXPECT_FALSE(IsFileName(""));
}

TEST(Spec, OrderSurvivesItsSignalValue) {
  for (const int64_t grace : {0, 1, 5000, 2097151}) {
    const Order order{Command::kKill, 64, grace};
    EXPECT_EQ(UnpackOrder(PackOrder(order)), order);
  }
  EXPECT_EQ(UnpackOrder(PackOrder({Command::kInputEnd})), Order{Command::kInputEnd});
  EXPECT_EQ(UnpackOrder(PackOrder({Command::kKill, 9, int64_t{1} << 40})).grace_ms, 2097151);
  EXPECT_EQ(UnpackOrder(PackOrder({Command::kKill, 9, -1})).grace_ms, 0);
}

}  // namespace
}  // namespace sekisho::agent::task
