// SPDX-License-Identifier: Apache-2.0
// The program itself, with certificates, killed by kill -9.
#include <sys/wait.h>

#include "agent/agent_fixture.h"
#include "common/tls/peer_verifier.h"
#include "tests/support/program.h"
#include "tests/support/test_ca.h"

namespace sekisho::agent {
namespace {

using ::testing::HasSubstr;

test::CertificateOptions ValidNow() {
  const auto now =
      std::chrono::time_point_cast<identity::Time::duration>(std::chrono::system_clock::now());
  test::CertificateOptions options;
  options.not_before = now - std::chrono::hours(24);
  options.not_after = now + std::chrono::hours(24);
  return options;
}

class DaemonTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGCHLD, SIG_DFL);
    chmod(directory_.path().c_str(), 0755);
    mkdir(directory_.File("home").c_str(), 0777);
    chmod(directory_.File("home").c_str(), 0777);
    mkdir(directory_.File("ca").c_str(), 0755);
    ca_.Install(directory_.File("ca"));
    const identity::Credential node = ca_.IssueHost("n1", ValidNow());
    test::WriteFile(directory_.File("cert.pem"), node.ChainPem());
    test::WriteFile(directory_.File("key.pem"), node.KeyPem(), 0600);
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("localhost:0",
                             tls::ServerCredentials(ca_.IssueHost("localhost", ValidNow())), &port);
    builder.RegisterService(&server_);
    grpc_ = builder.BuildAndStart();
    ASSERT_NE(grpc_, nullptr);
    WriteConfig("localhost:" + std::to_string(port));
  }

  void TearDown() override {
    StopAgent(SIGTERM);
    EXPECT_TRUE(Await([&] { return !server_.is_attached(); }));
    loop_.restart();
    loop_.run_for(50ms);  // so that the handler's end reaches gRPC
    grpc_->Shutdown(std::chrono::system_clock::now());
    loop_.restart();
    loop_.run_for(50ms);
  }

  void WriteConfig(const std::string& server) {
    test::WriteFile(directory_.File("agent.json"),
                    "{\"qserver\": \"" + server + "\", \"node\": \"n1\", \"cgroup\": \"none\",\n" +
                        "\"hostCertificate\": \"" + directory_.File("cert.pem") + "\",\n" +
                        "\"hostKey\": \"" + directory_.File("key.pem") + "\",\n" +
                        "\"caDirectory\": \"" + directory_.File("ca") + "\",\n" +
                        "\"launchSocket\": \"" + directory_.File("launch") + "\",\n" +
                        "\"stateDirectory\": \"" + directory_.File("state") + "\"}\n");
  }

  void Spawn(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--config", directory_.File("agent.json")});
    agent_.Start(more);
  }
  void StartAgent() {
    Spawn();
    ASSERT_TRUE(Await([&] { return server_.is_attached(); }));
  }
  int StopAgent(int signal) { return agent_.Stop(signal); }
  std::string Log() const { return agent_.Log(); }

  template <typename Condition>
  [[nodiscard]] bool Await(Condition is_true) {
    return test::EventuallyOn(loop_, is_true);
  }

  void StartTask(const std::string& job, const std::string& script) {
    proto::ServerMessage message;
    proto::ServerMessage::Start& start = *message.mutable_start();
    start.mutable_task()->set_job_id(job);
    start.set_account(getuid() == 0 ? "games" : getpwuid(getuid())->pw_name);
    start.set_directory(directory_.File("home"));
    for (const std::string& argument : {std::string("/bin/sh"), std::string("-c"), script}) {
      start.add_argument(argument);
    }
    server_.Send(message);
  }

  Loop loop_{1};
  test::TestCa ca_{"/C=JP/O=Test/CN=CA", ValidNow()};
  test::TemporaryDirectory directory_;
  FakeServer server_{loop_};
  std::unique_ptr<grpc::Server> grpc_;
  test::Program agent_{"sekisho-agent", directory_.File("log")};
};

TEST_F(DaemonTest, KillMinusNineLosesNothing) {
  StartAgent();
  for (int i = 1; i <= 5; ++i) {
    StartTask("job" + std::to_string(i), "echo $$ >> ran" + std::to_string(i) + "; " + kUntilGo +
                                             "echo end; exit " + std::to_string(i));
  }
  ASSERT_TRUE(Await([&] {
    size_t ready = 0;
    for (const auto& [key, task] : server_.seen) {
      ready += task.output[0] == "ready\n";
    }
    return ready == 5;
  }));

  StopAgent(SIGKILL);
  ASSERT_TRUE(Await([&] { return !server_.is_attached(); }));
  test::WriteFile(directory_.File("home/go"), "");
  StartAgent();

  for (int i = 1; i <= 5; ++i) {
    const Key key{"job" + std::to_string(i), 0};
    ASSERT_TRUE(Await([&] { return server_.IsComplete(key); }));
    EXPECT_EQ(server_.seen[key].exited->exit().code(), i);
    EXPECT_EQ(server_.seen[key].output[0], "ready\nend\n");
    std::ifstream ran(directory_.File("home/ran" + std::to_string(i)));
    EXPECT_EQ(std::count(std::istreambuf_iterator<char>(ran), {}, '\n'), 1);
  }
}

TEST_F(DaemonTest, StopsInOrderOnSigterm) {
  StartAgent();

  const int status = StopAgent(SIGTERM);

  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << Log();
}

TEST_F(DaemonTest, TalksToNoServerThatItDoesNotTrust) {
  mkdir(directory_.File("other-ca").c_str(), 0755);
  test::TestCa("/C=JP/O=Other/CN=CA", ValidNow()).Install(directory_.File("other-ca"));
  std::filesystem::remove_all(directory_.File("ca"));
  std::filesystem::rename(directory_.File("other-ca"), directory_.File("ca"));
  Spawn();

  EXPECT_TRUE(
      Await([&] { return Log().find("no connection to the queue server") != std::string::npos; }));
  EXPECT_FALSE(server_.hello);
}

TEST_F(DaemonTest, CheckSaysWhatIsWrong) {
  Spawn({"--check"});
  EXPECT_EQ(StopAgent(0), 0) << Log();

  WriteConfig("");
  Spawn({"--check"});
  EXPECT_NE(StopAgent(0), 0);
  EXPECT_THAT(Log(), HasSubstr("qserver: the queue server's host:port is missing"));
}

TEST_F(DaemonTest, SecondAgentOfTheSameStateIsRefused) {
  StartAgent();
  test::Program second("sekisho-agent", directory_.File("log-of-second"));
  second.Start({"--config", directory_.File("agent.json")});

  EXPECT_NE(second.Stop(0), 0);
  EXPECT_THAT(second.Log(), HasSubstr("another agent uses it"));
}

}  // namespace
}  // namespace sekisho::agent
