// SPDX-License-Identifier: Apache-2.0
#include "common/identity/credential.h"

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pkcs12.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/identity/chain.h"
#include "common/identity/dn.h"
#include "common/identity/proxy.h"
#include "tests/support/test_ca.h"

namespace sekisho::identity {
namespace {

using test::MakeProxy;
using test::ProxyShape;
using test::TemporaryDirectory;
using test::TestCa;
using test::TestNow;
using test::WriteFile;
using ::testing::HasSubstr;

class CredentialTest : public ::testing::Test {
 protected:
  CredentialTest() : user_(ca_.IssueUser("/C=JP/O=Test/CN=Taro")) {
    for (const char* name : {"X509_USER_PROXY", "X509_USER_CERT", "X509_USER_KEY"}) {
      unsetenv(name);
    }
    setenv("HOME", directory_.path().c_str(), 1);
    ca_.Install(directory_.path());
  }

  TemporaryDirectory directory_;
  TestCa ca_;
  Credential user_;
};

TEST_F(CredentialTest, AProxyFileComesBackAsItWasWritten) {
  const Credential proxy = MakeProxy(MakeProxy(user_));
  const std::string path = directory_.File("proxy");
  ASSERT_TRUE(WriteProxyFile(proxy, path).ok());

  const absl::StatusOr<Credential> read = LoadProxyFile(path);

  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ChainPem(), proxy.ChainPem());
  EXPECT_EQ(EVP_PKEY_eq(read->key.get(), proxy.key.get()), 1);
}

TEST_F(CredentialTest, AFileThatOthersCanReadIsRefused) {
  const std::string path = directory_.File("proxy");
  for (const int mode : {0644, 0640, 0604, 0660}) {
    WriteFile(path, ProxyFileText(MakeProxy(user_)), mode);
    EXPECT_THAT(LoadProxyFile(path).status().ToString(), HasSubstr("expected 0600 or 0400"));
  }
  chmod(path.c_str(), 0400);
  EXPECT_TRUE(LoadProxyFile(path).ok());
}

TEST_F(CredentialTest, TheKeyMustBelongToTheFirstCertificate) {
  const Credential proxy = MakeProxy(user_);
  const std::string turned = ToPem(*proxy.chain[1]) + proxy.KeyPem() + ToPem(*proxy.chain[0]);

  EXPECT_THAT(ParseCredential(turned, "file").status().ToString(),
              HasSubstr("does not belong to the first certificate, /C=JP/O=Test/CN=Taro"));
}

TEST_F(CredentialTest, BrokenFilesAreNamed) {
  for (const std::string& text :
       {std::string(), std::string("no PEM"), MakeProxy(user_).ChainPem()}) {
    EXPECT_THAT(ParseCredential(text, "/some/file").status().ToString(), HasSubstr("/some/file"));
  }
}

TEST_F(CredentialTest, TheProxyOfTheEnvironmentComesFirst) {
  const std::string path = directory_.File("proxy");
  ASSERT_TRUE(WriteProxyFile(MakeProxy(user_), path).ok());
  setenv("X509_USER_PROXY", path.c_str(), 1);
  EXPECT_EQ(LoadUserCredential()->source, path);

  // Named but missing is an error, not a reason to look elsewhere.
  setenv("X509_USER_PROXY", "/nonexistent", 1);
  EXPECT_TRUE(absl::IsNotFound(LoadUserCredential().status()));
}

TEST_F(CredentialTest, ThenTheKeyPairOfTheEnvironmentOrTheHome) {
  if (access(DefaultProxyPath().c_str(), F_OK) == 0) {
    GTEST_SKIP() << "this account has a proxy in /tmp";
  }
  EXPECT_THAT(LoadUserCredential().status().ToString(), HasSubstr("no credential"));

  std::filesystem::create_directory(directory_.File(".globus"));
  WriteFile(directory_.File(".globus/usercert.pem"), user_.ChainPem());
  WriteFile(directory_.File(".globus/userkey.pem"), user_.KeyPem(), 0600);
  EXPECT_THAT(LoadUserCredential()->source, HasSubstr(".globus/usercert.pem"));

  WriteFile(directory_.File("both.pem"), user_.ChainPem() + user_.KeyPem(), 0600);
  setenv("X509_USER_CERT", directory_.File("both.pem").c_str(), 1);
  EXPECT_EQ(LoadUserCredential()->source, directory_.File("both.pem"));
}

TEST_F(CredentialTest, ReadsWhatBrowsersExport) {
  const std::unique_ptr<PKCS12, Deleter<PKCS12_free>> bundle(PKCS12_create(
      "himitsu", "Taro", user_.key.get(), user_.chain[0].get(), nullptr, 0, 0, 0, 0, 0));
  unsigned char* der = nullptr;
  const int size = i2d_PKCS12(bundle.get(), &der);
  std::filesystem::create_directory(directory_.File(".globus"));
  const std::string path = directory_.File(".globus/usercred.p12");
  WriteFile(path, std::string(reinterpret_cast<char*>(der), static_cast<size_t>(size)), 0600);
  OPENSSL_free(der);
  const KeyPairPaths paths = DefaultKeyPairPaths();
  ASSERT_EQ(paths.certificate, path);

  const auto answer = [](const std::string& passphrase) {
    return [passphrase] { return absl::StatusOr<std::string>(passphrase); };
  };
  const absl::StatusOr<Credential> read =
      LoadKeyPair(paths.certificate, paths.key, answer("himitsu"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ChainPem(), user_.ChainPem());
  EXPECT_TRUE(absl::IsPermissionDenied(LoadKeyPair(path, path, answer("guess")).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(LoadKeyPair(path, path).status()));
}

TEST_F(CredentialTest, DelegationCarriesNoKey) {
  const Credential proxy = MakeProxy(user_);
  absl::StatusOr<DelegationRequest> request = MakeDelegationRequest();
  ASSERT_TRUE(request.ok());

  absl::StatusOr<Chain> answer = AnswerDelegation(proxy, request->der, {}, TestNow());
  ASSERT_TRUE(answer.ok()) << answer.status();
  const absl::StatusOr<Credential> delegated =
      AcceptDelegation(*std::move(request), *std::move(answer));
  ASSERT_TRUE(delegated.ok()) << delegated.status();

  const auto identity =
      VerifyChain(delegated->chain, **TrustStore::Load(directory_.path()), TestNow());
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->subject, "/C=JP/O=Test/CN=Taro");
  EXPECT_EQ(identity->proxy_count, 2);
  EXPECT_EQ(identity->not_after, TestNow() + std::chrono::hours(12));
}

TEST_F(CredentialTest, DelegationRefusesForeignAndBrokenRequests) {
  absl::StatusOr<DelegationRequest> request = MakeDelegationRequest();
  std::string broken = request->der;
  broken[broken.size() - 1] ^= 1;  // the signature

  EXPECT_TRUE(absl::IsInvalidArgument(AnswerDelegation(user_, broken, {}, TestNow()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(AnswerDelegation(user_, "", {}, TestNow()).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(AcceptDelegation(*std::move(request), Share(user_.chain)).status()));
}

TEST_F(CredentialTest, ProxiesNeverOutliveNorOutgrowTheirIssuer) {
  ProxyShape shape;
  shape.not_after = TestNow() + std::chrono::hours(1);
  const Credential short_lived = MakeProxy(user_, shape);

  const absl::StatusOr<Credential> proxy = CreateProxy(short_lived, {}, TestNow());

  ASSERT_TRUE(proxy.ok()) << proxy.status();
  EXPECT_EQ(NotAfter(*proxy->chain[0]), shape.not_after);
  EXPECT_EQ(NotBefore(*proxy->chain[0]), TestNow() - std::chrono::minutes(5));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      CreateProxy(short_lived, {}, TestNow() + std::chrono::hours(2)).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(CreateProxy(ca_.credential(), {}, TestNow()).status()));
}

}  // namespace
}  // namespace sekisho::identity
