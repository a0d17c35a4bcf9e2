// SPDX-License-Identifier: Apache-2.0
#include "common/contact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho {
namespace {

struct Row {
  std::string text;
  Contact contact;
};

TEST(Contact, TakesEveryFormOfGram) {
  const std::string subject = "/C=JP/O=X/CN=host/gate.example.org";
  const Row rows[] = {
      {"gate", {"gate"}},
      {"gate:754", {"gate", 754}},
      {"gate/jobmanager-fork", {"gate", 2119, "jobmanager-fork"}},
      {"gate:754/jobmanager-fork", {"gate", 754, "jobmanager-fork"}},
      {"gate:/jobmanager-fork", {"gate", 2119, "jobmanager-fork"}},
      {"gate::" + subject, {"gate", 2119, "jobmanager", "", subject}},
      {"gate:754:" + subject, {"gate", 754, "jobmanager", "", subject}},
      {"gate/jm:" + subject, {"gate", 2119, "jm", "", subject}},
      {"gate:/jm:" + subject, {"gate", 2119, "jm", "", subject}},
      {"gate.example.org:2119/jobmanager-fork:" + subject,
       {"gate.example.org", 2119, "jobmanager-fork", "", subject}},
      {"https://gate:754/jm", {"gate", 754, "jm"}},
      {"gate/jobmanager@guest", {"gate", 2119, "jobmanager", "guest"}},
      {"gate/@guest", {"gate", 2119, "jobmanager", "guest"}},
      {"192.0.2.7:22", {"192.0.2.7", 22}},
      {"[2001:db8::1]", {"2001:db8::1"}},
      {"[2001:db8::1]:754/jm:" + subject, {"2001:db8::1", 754, "jm", "", subject}},
      {"https://[::1]:754", {"::1", 754}},
  };
  for (const Row& row : rows) {
    const absl::StatusOr<Contact> contact = ParseContact(row.text);
    ASSERT_TRUE(contact.ok()) << row.text << ": " << contact.status();
    EXPECT_EQ(*contact, row.contact) << row.text;
    EXPECT_EQ(*ParseContact(ToText(row.contact)), row.contact) << ToText(row.contact);
  }
}

TEST(Contact, RefusesWhatGramReadsAsSomethingElse) {
  for (const std::string text :
       {"gate:x", "gate:0", "gate:65536", "gate:-1", "gate:754x/jm",
        "gate:754:", "gate::", "gate:754:subject", "[::1", "[::1]x", "[gate]", "ga te", "gate/j m",
        "gate/jm@", "2001:db8::1", "ftp://gate"}) {
    EXPECT_FALSE(ParseContact(text).ok()) << text;
  }
}

TEST(Contact, NamesErrorNinetySixForAnEmptyHost) {
  for (const std::string text : {"", "https://", ":754", "/jm"}) {
    EXPECT_THAT(ParseContact(text).status().ToString(), testing::HasSubstr("GRAM error 96"))
        << text;
  }
}

TEST(Contact, AddressesIPv6InBrackets) {
  EXPECT_EQ(ParseContact("[::1]:754")->Address(), "[::1]:754");
  EXPECT_EQ(ParseContact("gate")->Address(), "gate:2119");
}

TEST(Service, SplitsExecutorAndQueue) {
  EXPECT_EQ(*ParseService("/jobmanager"), (Service{"", ""}));
  EXPECT_EQ(*ParseService("jobmanager-agent"), (Service{"agent", ""}));
  EXPECT_EQ(*ParseService("/jobmanager-agent-long-jobs"), (Service{"agent", "long-jobs"}));
  for (const std::string text :
       {"", "/", "/jobmanagerx", "/jobmanager-", "/jobmanager-agent-", "/x"}) {
    EXPECT_TRUE(absl::IsNotFound(ParseService(text).status())) << text;
  }
}

}  // namespace
}  // namespace sekisho
