// SPDX-License-Identifier: Apache-2.0
#include "client/site/harmless.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/job/job_text.h"
#include "client/job/wait_notice.h"
#include "client/site/exit_code.h"
#include "common/refusal.h"

namespace sekisho::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kEscape[] = "\x1b]0;owned\x07\x1b[2J";

TEST(Harmless, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(Harmless("no such file: /tmp/\xe6\x9d\xb1 \\o/"), "no such file: /tmp/\xe6\x9d\xb1 \\o/");
  EXPECT_EQ(Harmless("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(Harmless("a\r\nsekisho: all is well"), "a\\x0d\\x0asekisho: all is well");
  EXPECT_EQ(Harmless("\x7f"), "\\x7f");
  EXPECT_EQ(Harmless("\xc2\x9b" "2J"), "\\xc2\\x9b2J");
  EXPECT_EQ(Harmless("\xe2\x80\xaegpj.exe"), "\\xe2\\x80\\xaegpj.exe");
  EXPECT_THAT(Harmless("\xff"), Not(HasSubstr("\xff")));
}

TEST(Harmless, KeepsLineEndsWhereThereMayBeSome) {
  EXPECT_EQ(HarmlessLines("a\x1b\nb\n\nc"), "a\\x1b\nb\n\nc");
  EXPECT_EQ(HarmlessLines(""), "");
}

TEST(Harmless, IsEverythingThatASiteSaysOfAJob) {
  proto::JobStatus job;
  job.set_site(kEscape);
  job.set_job_id(kEscape);
  job.set_state(proto::FAILED);
  job.set_reason(kEscape);
  job.set_remedy(kEscape);
  job.set_account(kEscape);
  job.set_executable(kEscape);
  job.set_resource(kEscape);
  job.add_placement()->set_node(kEscape);
  const absl::Status refusal = Refuse(absl::StatusCode::kInternal, 0, kEscape, kEscape);

  for (const std::string& text : {ErrorText(refusal), EndText(job), Describe(job, 0), Table({job}, 0),
                                  WaitText(kEscape, kEscape, true, kEscape, false)}) {
    EXPECT_THAT(text, Not(HasSubstr("\x1b"))) << text;
    EXPECT_THAT(text, Not(HasSubstr("\x07"))) << text;
    EXPECT_THAT(text, HasSubstr("\\x1b")) << text;
  }
}

}  // namespace
}  // namespace sekisho::client
