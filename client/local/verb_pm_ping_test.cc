// SPDX-License-Identifier: Apache-2.0
#include "client/local/verb_pm_ping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transport/pm/wire.h"

namespace sekisho::client {
namespace {

using testing::HasSubstr;

TEST(PmHost, IsNameOrAddressAndPerhapsAContext) {
  struct Case {
    const char* text;
    const char* host;
    int context;
  };
  for (const Case& one :
       std::initializer_list<Case>{{"n1", "n1", -1},
                                   {"n1:5", "n1", 5},
                                   {"10.1.0.11:65535", "10.1.0.11", 65535},
                                   {"fd00::1", "fd00::1", -1},
                                   {"[fd00::1]", "fd00::1", -1},
                                   {"[fd00::1]:7", "fd00::1", 7},
                                   // No contexts: the host is wrong, and named whole.
                                   {"n1:65536", "n1:65536", -1},
                                   {"n1:", "n1:", -1},
                                   {"n1:x", "n1:x", -1},
                                   {"[fd00::1]7", "[fd00::1]7", -1},
                                   {"[fd00::1", "[fd00::1", -1},
                                   {"", "", -1}}) {
    const PmHost at = ParsePmHost(one.text);
    EXPECT_EQ(at.host, one.host) << one.text;
    EXPECT_EQ(at.context, one.context) << one.text;
  }
}

TEST(PmNodeAt, TheFirstNodeAtTheHost) {
  pm::JobFile job;
  job.context = 5;
  job.nodes = 4;
  job.addresses = std::make_unique<pm::Address[]>(4);
  int node = 0;
  for (const char* address : {"127.0.0.2:1", "127.0.0.1:2", "127.0.0.1:3", "[fd00::7]:4"}) {
    ASSERT_FALSE(pm::ParseAddress(address, job.addresses[static_cast<size_t>(node++)]));
  }
  std::string wrong;
  EXPECT_EQ(PmNodeAt(job, {"127.0.0.1"}, wrong), 1);
  EXPECT_EQ(PmNodeAt(job, {"localhost", 5}, wrong), 1);
  EXPECT_EQ(PmNodeAt(job, {"fd00::7"}, wrong), 3);
  EXPECT_EQ(wrong, "");

  EXPECT_EQ(PmNodeAt(job, {"127.0.0.1", 6}, wrong), -1);
  EXPECT_EQ(wrong, "this job is context 5, not 6");
  EXPECT_EQ(PmNodeAt(job, {"127.0.0.3"}, wrong), -1);
  EXPECT_EQ(wrong, "no node of this job is at 127.0.0.3");
  EXPECT_EQ(PmNodeAt(job, {"n1:x"}, wrong), -1);
  EXPECT_THAT(wrong, HasSubstr("'n1:x' is no host: "));
}

}  // namespace
}  // namespace sekisho::client
