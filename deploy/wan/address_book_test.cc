// SPDX-License-Identifier: Apache-2.0
#include "deploy/wan/address_book.h"

#include <gtest/gtest.h>

namespace sekisho::wan {
namespace {

Host WithPrefixes(const std::string& name, const std::vector<std::string>& texts) {
  Host host;
  host.name = name;
  for (const std::string& text : texts)
    EXPECT_TRUE(ParsePrefix(text, host.prefixes.emplace_back()));
  return host;
}

uint32_t Address(const std::string& text) {
  Prefix prefix;
  EXPECT_TRUE(ParsePrefix(text, prefix)) << text;
  return prefix.address;
}

TEST(AddressBook, FindsTheHostOfEachOfItsAddresses) {
  std::string error;
  const auto book = AddressBook::Make(
      {WithPrefixes("a", {"10.0.1.2/24", "10.1.0.0/16"}), WithPrefixes("b", {"10.0.2.7"})}, error);

  ASSERT_TRUE(book) << error;
  EXPECT_EQ(book->HostOf(Address("10.0.1.0")), 0);
  EXPECT_EQ(book->HostOf(Address("10.0.1.255")), 0);
  EXPECT_EQ(book->HostOf(Address("10.1.200.3")), 0);
  EXPECT_EQ(book->HostOf(Address("10.0.2.7")), 1);
  for (const char* nobody :
       {"10.0.2.6", "10.0.2.8", "10.0.0.255", "10.2.0.0", "0.0.0.0", "255.255.255.255"}) {
    EXPECT_EQ(book->HostOf(Address(nobody)), -1) << nobody;
  }
}

TEST(AddressBook, RefusesOverlaps) {
  std::string error;

  EXPECT_FALSE(AddressBook::Make(
      {WithPrefixes("a", {"10.0.0.0/8"}), WithPrefixes("b", {"10.9.0.0/16"})}, error));

  EXPECT_EQ(error, "addresses of a and b overlap at 10.9.0.0");
}

TEST(Prefix, IsAnAddressAndALength) {
  Prefix prefix;
  EXPECT_TRUE(ParsePrefix("0.0.0.0/0", prefix));
  EXPECT_EQ(prefix.last(), ~0u);
  for (const char* bad :
       {"", "10.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8x", "::1", "/8"}) {
    EXPECT_FALSE(ParsePrefix(bad, prefix)) << bad;
  }
}

}  // namespace
}  // namespace sekisho::wan
