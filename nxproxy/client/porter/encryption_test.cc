// SPDX-License-Identifier: Apache-2.0
// Two ends of an encrypted stream, and somebody between them: docs/protocol/14-nxproxy-encryption.md.
#include <cerrno>
#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nxproxy/client/porter/latest_end.h"
#include "tests/support/test_ca.h"

namespace sekisho::nxproxy::client {
namespace {

using testing::HasSubstr;

// Of statements; qserver/relay_tokens.cc has the same.
constexpr char kLanguage[] = "2.25.261702524726569109574207370126763815491";
constexpr char kListener[] = "10.1.0.11:5000";

// The relay of this test: what one end sends reaches the other when the test says so.
class Between {
 public:
  Between() { Open(); }
  ~Between() { Close(); }
  // For two ends more.
  void Renew() {
    Close();
    Open();
  }

  int end(int side) const { return end_[side]; }
  // All that `side` has sent so far.
  std::string Take(int side) {
    std::string bytes(1 << 20, 0);
    const ssize_t got = recv(own_[side], bytes.data(), bytes.size(), 0);
    return bytes.substr(0, got > 0 ? static_cast<size_t>(got) : 0);
  }
  void Give(int side, const std::string& bytes) {
    EXPECT_EQ(send(own_[side], bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void Pass(int from) { Give(1 - from, Take(from)); }
  void Finish(int side) { shutdown(own_[side], SHUT_WR); }

 private:
  void Open() {
    for (int side = 0; side < 2; ++side) {
      int both[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both), 0);
      end_[side] = both[0];
      own_[side] = both[1];
    }
  }
  void Close() {
    close(own_[0]);
    close(own_[1]);
  }

  int end_[2];
  int own_[2];
};

class EncryptionTest : public testing::Test {
 protected:
  EncryptionTest() {
    ca_.Install(trust_.path());
    setenv("X509_CERT_DIR", trust_.path().c_str(), 1);
    setenv("HOME", trust_.path().c_str(), 1);
  }
  ~EncryptionTest() override {
    unsetenv("NXPROXY_KEY_FILE");
    unsetenv("NXPROXY_SPEAKERS");
    unsetenv("X509_USER_PROXY");
  }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = trust_.path() + "/" + name;
    std::ofstream(path) << text;
    chmod(path.c_str(), 0600);
    return path;
  }
  static std::unique_ptr<OwnEnd> Load() {
    std::string error;
    auto end = OwnEnd::Load(error);
    EXPECT_EQ(error, "");
    return end;
  }
  std::unique_ptr<OwnEnd> Job(const std::string& job, char seed,
                              const std::string& owner = "/O=Grid/CN=Alice") {
    setenv("NXPROXY_KEY_FILE",
           Write("key", "sekisho-relay-key 1\njob=" + job + "\nowner=" + owner +
                            "\nseed=" + std::string(64, seed) + "\n")
               .c_str(),
           1);
    return Load();
  }
  // A task of job j1 of Alice's at `site`, whose queue server is `host` and says `policy`.
  std::unique_ptr<OwnEnd> TaskAt(const std::string& site, const std::string& host, const std::string& policy,
                                 const std::string& language = kLanguage, bool is_over = false) {
    const std::string seed(64, site.back() == 'A' ? 'a' : 'b');
    const std::string lines = "sekisho-relay-key 1\njob=j1\nowner=/O=Grid/CN=Alice\nseed=" + seed + "\n";
    const KeyPtr key = KeyOf(*ParseJobKey(lines));
    test::ProxyShape shape;
    shape.not_before = Around().not_before;
    shape.not_after = is_over ? Now() - std::chrono::minutes(5) : Around().not_after;
    shape.language = language;
    shape.policy = policy;
    shape.certificate.subject_key = key.get();
    const auto statement = test::MakeProxy(ca_.IssueHost(host, Around()), shape);
    setenv("NXPROXY_KEY_FILE",
           Write("key-" + site, lines + "speaker=siteA /C=JP/O=Test/CN=host/a-head\n" +
                                    "speaker=siteB /C=JP/O=Test/CN=host/b-head\n" + statement.ChainPem())
               .c_str(),
           1);
    return Load();
  }
  static std::string Says(const std::string& site, const std::string& job = "j1",
                          const std::string& owner = "/O=Grid/CN=Alice") {
    return "site=" + site + "\njob=" + job + "\nowner=" + owner + "\n";
  }
  std::unique_ptr<OwnEnd> User(const std::string& subject) {
    unsetenv("NXPROXY_KEY_FILE");
    test::ProxyShape shape;
    shape.not_before = Around().not_before;
    shape.not_after = Around().not_after;
    const auto proxy = test::MakeProxy(ca_.IssueUser(subject, Around()), shape);
    setenv("X509_USER_PROXY", Write("proxy", proxy.ChainPem() + proxy.KeyPem()).c_str(), 1);
    return Load();
  }
  static identity::Time Now() {
    return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  }
  // OpenSSL judges by the clock.
  static test::CertificateOptions Around() {
    return {.not_before = Now() - std::chrono::hours(24), .not_after = Now() + std::chrono::hours(24)};
  }

  // Until both are done, or one is broken.
  bool Greet(const OwnEnd& connector, const OwnEnd& acceptor, const char* name = kListener) {
    between_.Renew();
    connector_ = connector.Connect(between_.end(0), name);
    acceptor_ = acceptor.Accept(between_.end(1), {kListener, "203.0.113.5:20001"});
    bool is_connected = false;
    bool is_accepted = false;
    for (int i = 0; i < 10 && !(is_connected && is_accepted); ++i) {
      is_connected = is_connected || connector_->Handshake() == TlsStream::Step::kDone;
      between_.Pass(0);
      is_accepted = is_accepted || acceptor_->Handshake() == TlsStream::Step::kDone;
      between_.Pass(1);
    }
    return is_connected && is_accepted;
  }
  // What `to` reads; "reset" or "again".
  static std::string Read(TlsStream& from) {
    std::string bytes(1 << 20, 0);
    const ssize_t got = from.Read(bytes.data(), bytes.size());
    return got >= 0 ? bytes.substr(0, static_cast<size_t>(got))
                    : (errno == EAGAIN ? "again" : "reset");
  }
  static void Send(TlsStream& to, const std::string& bytes) {
    EXPECT_EQ(to.Write(bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }

  test::TemporaryDirectory trust_;
  test::TestCa ca_{"/C=JP/O=Test/CN=CA", Around()};
  Between between_;
  std::unique_ptr<TlsStream> connector_;
  std::unique_ptr<TlsStream> acceptor_;
};

TEST_F(EncryptionTest, TasksOfAJobKnowEachOtherByItsKey) {
  ASSERT_TRUE(Greet(*Job("j1", 'a'), *Job("j1", 'a')));

  Send(*connector_, "a marker");
  const std::string on_the_way = between_.Take(0);
  between_.Give(1, on_the_way);

  EXPECT_EQ(on_the_way.find("marker"), std::string::npos);
  EXPECT_EQ(Read(*acceptor_), "a marker");
}

TEST_F(EncryptionTest, HalfCloseIsForEachDirectionAlone) {
  ASSERT_TRUE(Greet(*Job("j1", 'a'), *Job("j1", 'a')));

  Send(*connector_, "question");
  EXPECT_TRUE(connector_->End());
  between_.Pass(0);
  EXPECT_EQ(Read(*acceptor_), "question");
  EXPECT_EQ(Read(*acceptor_), "");
  Send(*acceptor_, "answer");
  EXPECT_TRUE(acceptor_->End());
  between_.Pass(1);

  EXPECT_EQ(Read(*connector_), "answer");
  EXPECT_EQ(Read(*connector_), "");
}

TEST_F(EncryptionTest, AnotherJobIsRefused) {
  EXPECT_FALSE(Greet(*Job("j1", 'a'), *Job("j2", 'b')));
  EXPECT_THAT(connector_->complaint() + acceptor_->complaint(), HasSubstr("not-yours"));
}

TEST_F(EncryptionTest, AUserKnowsHisOwnProgramsByTheirSubject) {
  ASSERT_TRUE(Greet(*User("/O=Grid/CN=Alice"), *User("/O=Grid/CN=Alice")));
}

TEST_F(EncryptionTest, AnotherUserIsRefusedAndBothAreNamed) {
  EXPECT_FALSE(Greet(*User("/O=Grid/CN=Alice"), *User("/O=Grid/CN=Bob")));
  EXPECT_THAT(connector_->complaint(), HasSubstr("at the far end is /O=Grid/CN=Bob, expected "
                                                 "/O=Grid/CN=Alice (not-yours)"));
}

TEST_F(EncryptionTest, AUserCannotKnowThatAKeyIsHisJobs) {
  const auto task = Job("j1", 'a');
  const auto user = User("/O=Grid/CN=Alice");
  EXPECT_FALSE(Greet(*user, *task));
  EXPECT_THAT(connector_->complaint(), HasSubstr("not-yours"));
}

TEST_F(EncryptionTest, TasksOfAWorldKnowEachOtherByTheirQueueServersWord) {
  ASSERT_TRUE(Greet(*TaskAt("siteA", "a-head", Says("siteA")), *TaskAt("siteB", "b-head", Says("siteB"))));

  Send(*connector_, "a marker");
  between_.Pass(0);

  EXPECT_EQ(Read(*acceptor_), "a marker");
}

TEST_F(EncryptionTest, AnotherHostsWordIsNoSites) {
  const auto own = TaskAt("siteA", "a-head", Says("siteA"));
  EXPECT_FALSE(Greet(*own, *TaskAt("siteB", "b-dmz", Says("siteB"))));
  EXPECT_THAT(connector_->complaint(), HasSubstr("siteB's queue server is /C=JP/O=Test/CN=host/b-head"));

  EXPECT_FALSE(Greet(*own, *TaskAt("siteB", "b-head", Says("siteA"))));
  EXPECT_THAT(connector_->complaint(), HasSubstr("siteA's queue server is /C=JP/O=Test/CN=host/a-head"));

  EXPECT_FALSE(Greet(*own, *TaskAt("siteB", "b-head", Says("siteC"))));
  EXPECT_THAT(connector_->complaint(), HasSubstr("who speaks for siteC is not known"));
}

TEST_F(EncryptionTest, AStatementIsForItsJobAndOwnerAlone) {
  const auto own = TaskAt("siteA", "a-head", Says("siteA"));
  for (const std::string& policy : {Says("siteB", "j2"), Says("siteB", "j1", "/O=Grid/CN=Bob")}) {
    EXPECT_FALSE(Greet(*own, *TaskAt("siteB", "b-head", policy)));
    EXPECT_THAT(connector_->complaint(), HasSubstr("expected one of /O=Grid/CN=Alice, job j1 (not-yours)"));
  }
  for (const std::string& policy : {Says("siteB") + "more=1\n", Says("siteB").substr(1), std::string()}) {
    EXPECT_FALSE(Greet(*own, *TaskAt("siteB", "b-head", policy))) << policy;
  }
  EXPECT_FALSE(Greet(*own, *TaskAt("siteB", "b-head", Says("siteB"), "2.25.7")));
}

TEST_F(EncryptionTest, AUserKnowsHisJobsTasksByTheirQueueServersWord) {
  const auto task = TaskAt("siteA", "a-head", Says("siteA"));
  setenv("NXPROXY_SPEAKERS", "siteA /C=JP/O=Test/CN=host/a-head\n", 1);
  EXPECT_TRUE(Greet(*User("/O=Grid/CN=Alice"), *task));
  EXPECT_FALSE(Greet(*User("/O=Grid/CN=Bob"), *task));
  EXPECT_THAT(connector_->complaint(), HasSubstr("expected one of /O=Grid/CN=Bob"));

  setenv("NXPROXY_SPEAKERS", "", 1);
  EXPECT_FALSE(Greet(*User("/O=Grid/CN=Alice"), *task));
  EXPECT_THAT(connector_->complaint(), HasSubstr("name it in sites.json"));
}

TEST_F(EncryptionTest, AStatementThatIsRenewedCountsFromTheNextStreamOn) {
  const auto other = TaskAt("siteB", "b-head", Says("siteB"));
  LatestEnd latest(TaskAt("siteA", "a-head", Says("siteA"), kLanguage, true));
  ASSERT_FALSE(Greet(latest.Get(true), *other));
  EXPECT_THAT(acceptor_->complaint(), HasSubstr("expired"));

  Write("key-siteA", "half of one");
  EXPECT_FALSE(Greet(latest.Get(true), *other));
  TaskAt("siteA", "a-head", Says("siteA"));

  EXPECT_TRUE(Greet(latest.Get(true), *other)) << acceptor_->complaint();
}

TEST_F(EncryptionTest, AProxyOfAPolicyThatIsUnknownSpeaksForNobody) {
  test::ProxyShape shape;
  shape.not_before = Around().not_before;
  shape.not_after = Around().not_after;
  shape.language = "2.25.7";
  shape.policy = "anything";
  const auto proxy = test::MakeProxy(ca_.IssueUser("/O=Grid/CN=Alice", Around()), shape);
  setenv("X509_USER_PROXY", Write("proxy", proxy.ChainPem() + proxy.KeyPem()).c_str(), 1);
  std::string error;
  EXPECT_EQ(OwnEnd::Load(error), nullptr);
  EXPECT_THAT(error, HasSubstr("speaks for no user"));
}

TEST_F(EncryptionTest, AListenerThatWasNotMeantIsFound) {
  const auto job = Job("j1", 'a');
  EXPECT_FALSE(Greet(*job, *job, "10.1.0.11:6000"));
  EXPECT_THAT(acceptor_->complaint(), HasSubstr("meant for 10.1.0.11:6000"));
  EXPECT_THAT(connector_->complaint(), HasSubstr("unrecognized-name"));
}

TEST_F(EncryptionTest, AChangedBitIsAReset) {
  ASSERT_TRUE(Greet(*Job("j1", 'a'), *Job("j1", 'a')));
  Send(*connector_, "a marker");
  std::string bytes = between_.Take(0);
  bytes[bytes.size() / 2] ^= 1;

  between_.Give(1, bytes);

  EXPECT_EQ(Read(*acceptor_), "reset");
}

TEST_F(EncryptionTest, AnEndThatItsProgramDidNotMakeIsAReset) {
  ASSERT_TRUE(Greet(*Job("j1", 'a'), *Job("j1", 'a')));
  Send(*connector_, "a marker");
  between_.Pass(0);

  between_.Finish(1);

  EXPECT_EQ(Read(*acceptor_), "a marker");
  EXPECT_EQ(Read(*acceptor_), "reset");
}

TEST_F(EncryptionTest, WhatIsSaidAgainIsAReset) {
  ASSERT_TRUE(Greet(*Job("j1", 'a'), *Job("j1", 'a')));
  Send(*connector_, "once");
  const std::string record = between_.Take(0);

  between_.Give(1, record);
  EXPECT_EQ(Read(*acceptor_), "once");
  between_.Give(1, record);

  EXPECT_EQ(Read(*acceptor_), "reset");
}

TEST_F(EncryptionTest, WhoDoesNotEncryptIsFound) {
  connector_ = Job("j1", 'a')->Connect(between_.end(0), kListener);
  EXPECT_EQ(connector_->Handshake(), TlsStream::Step::kRead);
  between_.Give(0, "HTTP/1.1 400 Bad Request\r\n\r\n");

  EXPECT_EQ(connector_->Handshake(), TlsStream::Step::kBroken);

  EXPECT_EQ(connector_->complaint(), kNotEncrypted);
}

TEST(JobKey, IsReadWholeOrNotAtAll) {
  const std::string good = "sekisho-relay-key 1\njob=j1\nowner=/CN=a\nseed=" + std::string(64, '0') + "\n";
  ASSERT_TRUE(ParseJobKey(good));
  EXPECT_EQ(ParseJobKey(good)->job, "j1");
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(ParseJobKey(good.substr(0, length))) << length;
  }
  EXPECT_FALSE(ParseJobKey(good.substr(0, good.size() - 3) + "zz\n"));
  EXPECT_EQ(ParseJobKey(good + "speaker=siteA /CN=a head\n")->speakers.at("siteA"), "/CN=a head");
  for (const char* line : {"speaker=\n", "speaker=siteA\n", "speaker= /CN=a\n", "speaker=siteA /CN=a"}) {
    EXPECT_FALSE(ParseJobKey(good + line)) << line;
  }
}

}  // namespace
}  // namespace sekisho::nxproxy::client
