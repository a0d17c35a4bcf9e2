// SPDX-License-Identifier: Apache-2.0
#include "common/identity/trust_store.h"

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/identity/chain.h"
#include "tests/support/test_ca.h"

namespace sekisho::identity {
namespace {

using test::TemporaryDirectory;
using test::TestCa;
using test::TestNow;
using test::WriteFile;
using ::testing::HasSubstr;

std::string Judge(const Credential& credential, const std::string& directory) {
  const absl::StatusOr<Identity> identity =
      VerifyChain(credential.chain, **TrustStore::Load(directory), TestNow());
  return identity.ok() ? "" : identity.status().ToString();
}

TEST(TrustStore, KeepsAuthoritiesOfOneNameApartByTheirKeys) {
  const TemporaryDirectory directory;
  const TestCa old_key;
  const TestCa new_key;  // the same name: <hash>.0 and <hash>.1
  old_key.Install(directory.path());
  new_key.Install(directory.path());

  EXPECT_EQ(Judge(old_key.IssueUser("/C=JP/O=Test/CN=a"), directory.path()), "");
  EXPECT_EQ(Judge(new_key.IssueUser("/C=JP/O=Test/CN=a"), directory.path()), "");
  EXPECT_THAT(Judge(TestCa().IssueUser("/C=JP/O=Test/CN=a"), directory.path()),
              HasSubstr("[other-authority-of-same-name]"));
}

TEST(TrustStore, TheNewestListCounts) {
  const TemporaryDirectory directory;
  const TestCa ca;
  const Credential user = ca.IssueUser("/C=JP/O=Test/CN=a");
  const std::chrono::hours hour(1);
  ca.Install(directory.path(), ca.Crl({}, {TestNow() - 3 * hour, TestNow() + hour, false}));
  EXPECT_EQ(Judge(user, directory.path()), "");

  WriteFile(directory.File(ca.Hash() + ".r1"),
            ca.Crl({user.chain[0].get()}, {TestNow() - 2 * hour, TestNow() + hour, false}));
  EXPECT_THAT(Judge(user, directory.path()), HasSubstr("[revoked]"));
}

TEST(TrustStore, AListThatCannotBeReadRefusesItsAuthority) {
  const TemporaryDirectory directory;
  const TestCa ca;
  ca.Install(directory.path(), "not a list");
  const TestCa other("/C=JP/O=Other/CN=CA");
  other.Install(directory.path());

  EXPECT_THAT(Judge(ca.IssueUser("/C=JP/O=Test/CN=a"), directory.path()),
              HasSubstr("[crl-unusable]"));
  EXPECT_EQ(Judge(other.IssueUser("/C=JP/O=Other/CN=a"), directory.path()), "");
}

TEST(TrustStore, OneBrokenFileDoesNotSpoilTheRest) {
  const TemporaryDirectory directory;
  const TestCa ca;
  ca.Install(directory.path());
  WriteFile(directory.File("00000000.0"), "garbage");
  WriteFile(directory.File("README"), "not ours");

  const auto store = TrustStore::Load(directory.path());

  ASSERT_TRUE(store.ok());
  EXPECT_EQ((*store)->size(), 1u);
  ASSERT_EQ((*store)->warnings().size(), 1u);
  EXPECT_THAT((*store)->warnings()[0], HasSubstr("00000000.0"));
  EXPECT_EQ(Judge(ca.IssueUser("/C=JP/O=Test/CN=a"), directory.path()), "");
}

TEST(TrustStore, NeedsADirectoryWithAuthorities) {
  const TemporaryDirectory directory;

  EXPECT_TRUE(absl::IsNotFound(TrustStore::Load(directory.path()).status()));
  EXPECT_TRUE(absl::IsNotFound(TrustStore::Load("/nonexistent").status()));
  EXPECT_TRUE(absl::IsNotFound(TrustStore::LoadFor("/nonexistent", {}).status()));
}

TEST(TrustStore, LoadsIntermediateAuthoritiesOfTheDirectory) {
  const TemporaryDirectory directory;
  const TestCa root;
  const TestCa sub(root, "/C=JP/O=Test/CN=Sub");
  root.Install(directory.path());
  sub.Install(directory.path());
  Credential user = sub.IssueUser("/C=JP/O=Test/CN=a");
  user.chain.resize(1);  // the peer sends only his own

  EXPECT_EQ(Judge(user, directory.path()), "");
  const auto some = TrustStore::LoadFor(directory.path(), user.chain);
  EXPECT_TRUE(VerifyChain(user.chain, **some, TestNow()).ok());
}

TEST(TrustDirectory, HasAnotherVersionAfterEveryChange) {
  const TemporaryDirectory directory;
  const TestCa ca;
  ca.Install(directory.path());
  const std::string list = directory.File(ca.Hash() + ".r0");
  uint64_t before = TrustVersion(directory.path());
  EXPECT_EQ(TrustVersion(directory.path()), before);

  WriteFile(list, ca.Crl({}));
  EXPECT_NE(TrustVersion(directory.path()), before);
  before = TrustVersion(directory.path());
  WriteFile(list, ca.Crl({&ca.certificate()}));  // in place
  EXPECT_NE(TrustVersion(directory.path()), before);
  before = TrustVersion(directory.path());
  std::filesystem::remove(list);
  EXPECT_NE(TrustVersion(directory.path()), before);
}

TEST(TrustDirectory, IsFoundByTheEnvironmentFirst) {
  const TemporaryDirectory home;
  setenv("X509_CERT_DIR", "/some/where", 1);
  EXPECT_EQ(*FindTrustDirectory(), "/some/where");
  unsetenv("X509_CERT_DIR");

  setenv("HOME", home.path().c_str(), 1);
  std::filesystem::create_directories(home.File(".globus/certificates"));
  EXPECT_EQ(*FindTrustDirectory(), home.File(".globus/certificates"));
}

}  // namespace
}  // namespace sekisho::identity
