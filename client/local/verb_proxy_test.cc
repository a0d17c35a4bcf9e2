// SPDX-License-Identifier: Apache-2.0
#include "client/local/verb_proxy.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "common/identity/chain.h"
#include "common/identity/dn.h"
#include "common/identity/proxy.h"
#include "tests/support/test_ca.h"

namespace sekisho::client {
namespace {

using identity::Credential;
using identity::Time;
using test::CertificateOptions;
using test::MakeProxy;
using test::TemporaryDirectory;
using test::TestCa;
using test::TestNow;
using test::WriteFile;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Real time, since the tools compared with know no other.
Time Now() { return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()); }

CertificateOptions Rsa() {
  CertificateOptions options;
  options.not_before = Now() - std::chrono::hours(24);
  options.not_after = Now() + std::chrono::hours(24 * 30);
  options.rsa_bits = 2048;
  return options;
}

struct Ran {
  int exit_code = 0;
  std::string output;
};

Ran Shell(const std::string& command) {
  Ran ran;
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  char buffer[4096];
  while (std::fgets(buffer, sizeof(buffer), pipe) != nullptr) {
    ran.output += buffer;
  }
  ran.exit_code = WEXITSTATUS(pclose(pipe));
  return ran;
}

// One authority and one user for all tests: RSA keys are slow to make.
const TestCa& Authority() {
  static const TestCa ca("/C=JP/O=Test/CN=CA", Rsa());
  return ca;
}

const Credential& User() {
  static const Credential user = Authority().IssueUser("/C=JP/O=Test/CN=Taro", Rsa());
  return user;
}

// A user's ~/.globus and a trust directory.
class ProxyVerbTest : public ::testing::Test {
 protected:
  ProxyVerbTest() {
    Authority().Install(directory_.path(), "", Authority().SigningPolicyText({"/C=JP/O=Test/*"}));
    certificate_ = directory_.File("usercert.pem");
    key_ = directory_.File("userkey.pem");
    proxy_ = directory_.File("proxy");
    WriteFile(certificate_, User().ChainPem());
    WriteFile(key_, User().KeyPem(), 0600);
  }

  ProxyInit Options() const {
    ProxyInit options;
    options.certificate = certificate_;
    options.key = key_;
    options.out = proxy_;
    options.trust_directory = directory_.path();
    options.is_verified = true;
    return options;
  }

  int Init(const ProxyInit& options, const identity::AskPassphrase& ask = {}) {
    return InitProxy(options, ask, Now(), {out_, err_});
  }
  int Info(ProxyInfo options, Time now = Now()) {
    options.file = proxy_;
    return InfoProxy(options, now, {out_, err_});
  }

  // With the tools' own environment: only our directory is trusted.
  Ran Grid(const std::string& command) {
    return Shell("X509_CERT_DIR=" + directory_.path() + " HOME=" + directory_.path() + " " +
                 command);
  }

  static constexpr char kSubject[] = "/C=JP/O=Test/CN=Taro";
  TemporaryDirectory directory_;
  std::string certificate_;
  std::string key_;
  std::string proxy_;
  std::ostringstream out_;
  std::ostringstream err_;
};

bool HasGridTools() { return std::system("command -v grid-proxy-init >/dev/null") == 0; }

TEST_F(ProxyVerbTest, InitWritesAPrivateFileInTheUsualOrder) {
  ASSERT_EQ(Init(Options()), 0) << err_.str();

  EXPECT_THAT(out_.str(), HasSubstr("Your identity: /C=JP/O=Test/CN=Taro\n"));
  struct stat stat = {};
  ASSERT_EQ(::stat(proxy_.c_str(), &stat), 0);
  EXPECT_EQ(stat.st_mode & 07777, 0600u);
  const std::string order = Shell("grep -e '-----BEGIN' " + proxy_).output;
  EXPECT_EQ(order,
            "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n"
            "-----BEGIN CERTIFICATE-----\n");
}

TEST_F(ProxyVerbTest, InitMakesTheKindThatIsAskedFor) {
  ProxyInit options = Options();
  options.is_limited = true;
  options.valid = "1:30";
  ASSERT_EQ(Init(options), 0) << err_.str();

  out_.str("");
  ASSERT_EQ(Info({"", {}, true}), 0);
  const nlohmann::json info = nlohmann::json::parse(out_.str());
  EXPECT_EQ(info["identity"], kSubject);
  EXPECT_EQ(info["issuer"], kSubject);
  EXPECT_EQ(info["type"], "RFC 3820 compliant limited proxy");
  EXPECT_EQ(info["is_limited"], true);
  EXPECT_EQ(info["strength_bits"], 256);
  EXPECT_LE(info["timeleft_s"], 5400);
  EXPECT_GE(info["timeleft_s"], 5380);
}

TEST_F(ProxyVerbTest, AProxyOfALimitedProxyIsLimited) {
  ProxyInit options = Options();
  options.is_limited = true;
  ASSERT_EQ(Init(options), 0);

  options = Options();
  options.certificate = proxy_;
  options.key.clear();
  ASSERT_EQ(Init(options), 0) << err_.str();

  out_.str("");
  Info({"", {"identity", "type"}});
  EXPECT_EQ(out_.str(), std::string(kSubject) + "\nRFC 3820 compliant limited proxy\n");
}

TEST_F(ProxyVerbTest, PathLengthZeroAllowsNoFurtherProxy) {
  ProxyInit options = Options();
  options.path_length = 0;
  ASSERT_EQ(Init(options), 0);

  options = Options();
  options.certificate = proxy_;
  options.key.clear();
  EXPECT_EQ(Init(options), 1);
  EXPECT_THAT(err_.str(), HasSubstr("allows no further proxy"));
}

TEST_F(ProxyVerbTest, InitNeverFollowsASymbolicLink) {
  const std::string victim = directory_.File("victim");
  WriteFile(victim, "untouched");
  std::filesystem::create_symlink(victim, proxy_);

  ASSERT_EQ(Init(Options()), 0) << err_.str();

  EXPECT_EQ(std::filesystem::file_size(victim), 9u);
  EXPECT_FALSE(std::filesystem::is_symlink(proxy_));
}

TEST_F(ProxyVerbTest, InitAsksForThePassphraseOfAnEncryptedKey) {
  std::FILE* file = std::fopen(key_.c_str(), "w");
  ASSERT_EQ(PEM_write_PrivateKey(file, User().key.get(), EVP_aes_256_cbc(), nullptr, 0, nullptr,
                                 const_cast<char*>("himitsu")),
            1);
  std::fclose(file);

  EXPECT_EQ(Init(Options(), [] { return absl::StatusOr<std::string>("himitsu"); }), 0)
      << err_.str();
  EXPECT_EQ(Init(Options(), [] { return absl::StatusOr<std::string>("guess"); }), 1);
  EXPECT_THAT(err_.str(), HasSubstr("wrong passphrase"));
  EXPECT_EQ(Init(Options()), 1);
  EXPECT_THAT(err_.str(), HasSubstr("is encrypted"));
}

TEST_F(ProxyVerbTest, InitRefusesAKeyThatOthersCanRead) {
  chmod(key_.c_str(), 0640);

  EXPECT_EQ(Init(Options()), 1);
  EXPECT_THAT(err_.str(), HasSubstr("mode 0640, expected 0600 or 0400"));
  EXPECT_FALSE(std::filesystem::exists(proxy_));
}

TEST_F(ProxyVerbTest, InitRefusesWhatTheTrustDirectoryDoesNotKnow) {
  ProxyInit options = Options();
  TemporaryDirectory empty;
  options.trust_directory = empty.path();

  EXPECT_EQ(Init(options), 1);
  EXPECT_THAT(err_.str(), HasSubstr("[unknown-issuer]"));
}

TEST_F(ProxyVerbTest, UsageErrorsExitWith64) {
  for (const auto& change : std::vector<std::function<void(ProxyInit&)>>{
           [](ProxyInit& o) { o.valid = "abc"; }, [](ProxyInit& o) { o.valid = "1:60"; },
           [](ProxyInit& o) { o.valid = "0:0"; }, [](ProxyInit& o) { o.bits = 1024; },
           [](ProxyInit& o) { o.is_limited = o.is_independent = true; }}) {
    ProxyInit options = Options();
    change(options);
    EXPECT_EQ(Init(options), 64) << err_.str();
  }
  EXPECT_THAT(err_.str(), HasSubstr("saw \"abc\"\n  -> write for example 12:00"));
}

TEST_F(ProxyVerbTest, SaysWhatToDoWithoutACertificate) {
  ProxyInit options = Options();
  options.certificate = options.key = "/nonexistent";

  EXPECT_EQ(Init(options), 1);
  EXPECT_THAT(err_.str(), HasSubstr("/nonexistent: No such file or directory\n  -> put your certificate and key there"));
}

TEST_F(ProxyVerbTest, ExistsAnswersByExitCode) {
  ProxyInfo exists;
  exists.exists = true;
  EXPECT_EQ(Info(exists), 1);

  ASSERT_EQ(Init(Options()), 0);
  out_.str("");
  EXPECT_EQ(Info(exists), 0);
  exists.valid = "11:59";
  EXPECT_EQ(Info(exists), 0);
  exists.valid = "12:01";
  EXPECT_EQ(Info(exists), 1);
  exists.valid = "0:0";
  exists.bits = 4096;
  EXPECT_EQ(Info(exists), 1);
  exists.bits = 2048;  // P-256 is stronger
  EXPECT_EQ(Info(exists), 0);
  exists.bits = 0;
  EXPECT_EQ(Info(exists, Now() + std::chrono::hours(13)), 1);
  EXPECT_EQ(out_.str(), "");
}

TEST_F(ProxyVerbTest, DestroyRemovesFilesButNoLinks) {
  ASSERT_EQ(Init(Options()), 0);
  const std::string link = directory_.File("link");
  std::filesystem::create_symlink(proxy_, link);

  EXPECT_EQ(DestroyProxy({{link}}, {out_, err_}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("symbolic link"));
  EXPECT_TRUE(std::filesystem::exists(proxy_));
  EXPECT_EQ(DestroyProxy({{proxy_}, true}, {out_, err_}), 0);
  EXPECT_TRUE(std::filesystem::exists(proxy_));
  EXPECT_EQ(DestroyProxy({{proxy_}}, {out_, err_}), 0);
  EXPECT_FALSE(std::filesystem::exists(proxy_));
  EXPECT_EQ(DestroyProxy({{proxy_}}, {out_, err_}), 1);
}

// With an elliptic-curve key, as we make them, and with an RSA key.
class OurProxyInGridTools : public ProxyVerbTest, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Bits, OurProxyInGridTools, ::testing::Values(0, 2048));

TEST_P(OurProxyInGridTools, IsReadAndSignsOneMore) {
  if (!HasGridTools()) {
    GTEST_SKIP() << "globus-proxy-utils is not installed";
  }
  ProxyInit options = Options();
  options.bits = GetParam();
  ASSERT_EQ(Init(options), 0);

  EXPECT_EQ(Grid("grid-proxy-info -file " + proxy_ + " -identity").output,
            std::string(kSubject) + "\n");
  EXPECT_EQ(Grid("grid-proxy-info -file " + proxy_ + " -type").output,
            "RFC 3820 compliant impersonation proxy\n");
  EXPECT_EQ(Grid("grid-proxy-info -file " + proxy_ + " -exists -valid 11:50").exit_code, 0);
  // Its verification of our proxy, by having it sign one more.
  const std::string next = directory_.File("next");
  const Ran ran =
      Grid("grid-proxy-init -rfc -verify -cert " + proxy_ + " -key " + proxy_ + " -out " + next);
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("Proxy Verify OK"));
  // What it signed with our key is good for us too.
  const absl::StatusOr<Credential> proxy = identity::LoadProxyFile(next);
  ASSERT_TRUE(proxy.ok()) << proxy.status();
  EXPECT_TRUE(
      identity::VerifyChain(proxy->chain, **identity::TrustStore::Load(directory_.path()), Now()).ok());

  for (const auto& [flag, type] : std::vector<std::pair<bool, std::string>>{
           {true, "RFC 3820 compliant limited proxy\n"},
           {false, "RFC 3820 compliant independent proxy\n"}}) {
    options.is_limited = flag;
    options.is_independent = !flag;
    ASSERT_EQ(Init(options), 0);
    EXPECT_EQ(Grid("grid-proxy-info -file " + proxy_ + " -type").output, type);
  }
}

TEST_F(ProxyVerbTest, WeReadWhatGridProxyInitMakes) {
  if (!HasGridTools()) {
    GTEST_SKIP() << "globus-proxy-utils is not installed";
  }
  const auto trust = *identity::TrustStore::Load(directory_.path());
  for (const std::string flags : {"-rfc", "-rfc -limited", "-rfc -independent", "-path-length 1"}) {
    SCOPED_TRACE(flags);
    const Ran ran = Grid("grid-proxy-init " + flags + " -cert " + certificate_ + " -key " + key_ +
                         " -out " + proxy_);
    ASSERT_EQ(ran.exit_code, 0) << ran.output;

    const absl::StatusOr<Credential> proxy = identity::LoadProxyFile(proxy_);
    ASSERT_TRUE(proxy.ok()) << proxy.status();
    const absl::StatusOr<identity::Identity> identity =
        identity::VerifyChain(proxy->chain, *trust, Now());
    ASSERT_TRUE(identity.ok()) << identity.status();
    EXPECT_EQ(identity->is_limited, flags == "-rfc -limited");
    if (flags == "-rfc -independent") {
      EXPECT_THAT(identity->subject, StartsWith(std::string(kSubject) + "/CN="));
    } else {
      EXPECT_EQ(identity->subject, kSubject);
    }

    // The two tools describe it alike.
    for (const std::string field : {"subject", "issuer", "type", "strength", "path"}) {
      out_.str("");
      ASSERT_EQ(Info({"", {field}}), 0);
      EXPECT_EQ(out_.str(), Grid("grid-proxy-info -file " + proxy_ + " -" + field).output) << field;
    }
  }
  const Ran ran =
      Grid("grid-proxy-init -old -cert " + certificate_ + " -key " + key_ + " -out " + proxy_);
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const absl::StatusOr<Credential> legacy = identity::LoadProxyFile(proxy_);
  ASSERT_TRUE(legacy.ok());
  EXPECT_THAT(identity::VerifyChain(legacy->chain, *trust, Now()).status().ToString(),
              HasSubstr("[legacy-proxy]"));
  const Ran draft =
      Grid("grid-proxy-init -draft -cert " + certificate_ + " -key " + key_ + " -out " + proxy_);
  ASSERT_EQ(draft.exit_code, 0) << draft.output;
  EXPECT_THAT(identity::VerifyChain(identity::LoadProxyFile(proxy_)->chain, *trust, Now())
                  .status()
                  .ToString(),
              HasSubstr("[draft-proxy]"));
}

TEST_F(ProxyVerbTest, TheCommandLineReachesTheVerb) {
  CLI::App app;
  int exit_code = -1;
  AddProxyVerb(app, exit_code);

  app.parse("proxy init -q --cert " + certificate_ + " --key " + key_ + " --out " + proxy_ +
            " --valid 2:00 --limited --path-length 3");
  EXPECT_EQ(exit_code, 0);
  app.parse("proxy info --exists --valid 1:59 --file " + proxy_);
  EXPECT_EQ(exit_code, 0);
  app.parse("proxy destroy " + proxy_);
  EXPECT_EQ(exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(proxy_));
}

}  // namespace
}  // namespace sekisho::client
