// SPDX-License-Identifier: Apache-2.0
// The programs themselves, over TLS, with real processes: starting and restarting jobmanagers, refusals as
// a stranger meets them, and a flood of connections that never finish.  No queue server is needed: a
// jobmanager lists its jobs without one.
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <list>
#include <memory>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/identity/dn.h"
#include "common/identity/proxy.h"
#include "common/refusal.h"
#include "common/rpc_status.h"
#include "common/tls/client_tls.h"
#include "tests/support/byte_call.h"
#include "tests/support/eventually.h"
#include "tests/support/program.h"
#include "tests/support/silent_call.h"
#include "tests/support/test_ca.h"

namespace sekisho::gatekeeper {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using test::Eventually;
using test::ReadFile;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

class GatekeeperProgram : public testing::Test {
 protected:
  void SetUp() override {
    fs::permissions(directory_.path(), fs::perms(0755));
    account_ = geteuid() == 0 ? "nobody" : getpwuid(geteuid())->pw_name;
    fs::create_directory(File("certificates"));
    ca_.Install(File("certificates"));
    alice_ = ca_.IssueUser("/C=JP/O=Test/CN=Alice");
    test::WriteFile(File("hostcert.pem"), host_.ChainPem());
    test::WriteFile(File("hostkey.pem"), host_.KeyPem(), 0600);
    const auto service = ca_.IssueUser("/C=JP/O=Test/CN=jobmanager/gate");
    test::WriteFile(File("jmcert.pem"), service.ChainPem());
    test::WriteFile(File("jmkey.pem"), service.KeyPem(), 0600);
    test::WriteFile(File("grid-mapfile"), "\"/C=JP/O=Test/CN=Alice\" " + account_ + "\n");
    test::WriteFile(File("jobmanager.json"),
                    fmt::format(R"({{"site": "siteA", "qserver": "127.0.0.1:1", "ca_directory": "{}"}})",
                                File("certificates")));
    test::WriteFile(
        File("gatekeeper.json"),
        fmt::format(R"({{"site": "siteA", "listen": "127.0.0.1:0", "host_certificate": "{0}/hostcert.pem",
          "host_key": "{0}/hostkey.pem", "ca_directory": "{0}/certificates",
          "grid_mapfile": "{0}/grid-mapfile", "audit_log": "{0}/audit.log",
          "jobmanager": {{"config": "{0}/jobmanager.json",
            "state_directory": "{0}/state", "service_certificate": "{0}/jmcert.pem",
            "service_key": "{0}/jmkey.pem"}}}})",
                    directory_.path()));
    Start();
  }

  void TearDown() override {
    program_.Stop(SIGTERM);
    EXPECT_TRUE(Eventually([this] { return JobManagers().empty(); }));
    if (HasFailure()) {
      std::fprintf(stderr, "%s", program_.Log().c_str());
    }
  }

  void Start() {
    program_.Start({"--config", File("gatekeeper.json")});
    port_ = program_.NumberAfter(" port=");
    ASSERT_GT(port_, 0) << program_.Log();
  }

  std::string File(const std::string& name) const { return directory_.File(name); }

  std::shared_ptr<grpc::Channel> Dial(const identity::Credential& credential) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const tls::ClientTls client = tls::MakeClientTls(
        credential, File("certificates"), {.host = "", .subject = identity::SubjectText(*host_.chain.front())});
    return grpc::CreateCustomChannel(fmt::format("127.0.0.1:{}", port_), client.credentials, arguments);
  }

  // The jobs of whoever calls: an empty list, or why not.
  static absl::Status List(const std::shared_ptr<grpc::Channel>& channel, const std::string& service = "") {
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(20));
    if (!service.empty()) {
      context.AddMetadata("sekisho-service", service);
    }
    grpc::Slice nothing;
    const grpc::ByteBuffer request(&nothing, 1);
    grpc::ByteBuffer reply;
    std::promise<grpc::Status> done;
    stub.UnaryCall(&context, "/sekisho.proto.JobService/List", {}, &request, &reply,
                   [&done](grpc::Status status) { done.set_value(std::move(status)); });
    return FromGrpc(done.get_future().get());
  }

  // Processes that serve this test's state directory.
  std::vector<pid_t> JobManagers() const {
    std::vector<pid_t> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const pid_t pid = std::atoi(entry.path().filename().c_str());
      if (pid > 0 && ReadFile(entry.path() / "cmdline").find(File("state")) != std::string::npos) {
        found.push_back(pid);
      }
    }
    return found;
  }

  // It has a call to answer: it stays.
  pid_t StopTheBusyJobManager() const {
    const pid_t pid = JobManagers().at(0);
    kill(pid, SIGTERM);
    EXPECT_FALSE(Eventually([&] { return kill(pid, 0) != 0; }, std::chrono::milliseconds(300)));
    return pid;
  }

  test::TemporaryDirectory directory_;
  test::TestCa ca_;
  identity::Credential host_ = ca_.IssueHost("gate.example.org");
  identity::Credential alice_;
  std::string account_;
  test::Program program_{"sekisho-gatekeeper", directory_.File("log")};
  int port_ = 0;
};

TEST_F(GatekeeperProgram, StartsTheAccountsJobManagerOnceForManyFirstCalls) {
  std::vector<std::future<absl::Status>> calls;
  for (int i = 0; i < 20; ++i) {
    calls.push_back(std::async(std::launch::async, [this] { return List(Dial(alice_)); }));
  }
  for (auto& call : calls) {
    EXPECT_TRUE(call.get().ok());
  }

  const auto pids = JobManagers();
  ASSERT_EQ(pids.size(), 1u);
  struct stat status {};
  const std::string state = fmt::format("{}/{}", File("state"), account_);
  ASSERT_EQ(stat(state.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  EXPECT_EQ(status.st_uid, getpwnam(account_.c_str())->pw_uid);
  // No path of the account leads the gatekeeper anywhere.  Its figures are for others to read.
  for (const auto& entry : fs::directory_iterator(state)) {
    EXPECT_TRUE(!entry.is_socket() || entry.path().filename() == "metrics") << entry.path();
  }
  // It runs as the account, holds no secret where others can see it, and cannot be looked into.
  EXPECT_THAT(ReadFile(fmt::format("/proc/{}/status", pids[0])),
              HasSubstr(fmt::format("Uid:\t{}\t", getpwnam(account_.c_str())->pw_uid)));
  EXPECT_EQ(getsid(pids[0]), pids[0]);
  ASSERT_EQ(stat(fmt::format("/proc/{}/environ", pids[0]).c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 0u);  // undumpable
}

TEST_F(GatekeeperProgram, StartsAKilledJobManagerAgain) {
  const auto channel = Dial(alice_);
  ASSERT_TRUE(List(channel).ok());
  const pid_t first = JobManagers().at(0);

  kill(first, SIGKILL);

  ASSERT_TRUE(Eventually([&] { return List(channel).ok(); }));
  EXPECT_NE(JobManagers().at(0), first);
}

TEST_F(GatekeeperProgram, LeavesNoJobManagerBehindWhenItIsKilled) {
  ASSERT_TRUE(List(Dial(alice_)).ok());

  program_.Stop(SIGKILL);

  EXPECT_TRUE(Eventually([this] { return JobManagers().empty(); }));
  Start();
  EXPECT_TRUE(List(Dial(alice_)).ok());
}

// A call whose headers are there, and whose question comes later.
class SlowQuestion final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  SlowQuestion(const std::shared_ptr<grpc::Channel>& channel, const std::string& method) : stub_(channel) {
    context_.set_deadline(std::chrono::system_clock::now() + seconds(20));
    stub_.PrepareBidiStreamingCall(&context_, "/sekisho.proto.JobService/" + method, {}, this);
    AddHold();
    StartRead(&reply_);
    StartCall();
  }
  // The message; the end of ours follows when that has gone.
  void Send() {
    grpc::Slice nothing;
    question_ = grpc::ByteBuffer(&nothing, 1);
    StartWrite(&question_);
  }
  absl::Status Answer() { return FromGrpc(done_.get_future().get()); }
  absl::Status Ask() {
    Send();
    return Answer();
  }

 private:
  void OnReadDone(bool ok) override {
    if (ok) {
      StartRead(&reply_);
    }
  }
  void OnWriteDone(bool) override {
    StartWritesDone();
    RemoveHold();
  }
  void OnDone(const grpc::Status& status) override { done_.set_value(status); }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer question_, reply_;
  std::promise<grpc::Status> done_;
};

TEST_F(GatekeeperProgram, LetsACallThatRunsEndWhenItIsStopped) {
  const auto channel = Dial(alice_);
  SlowQuestion running(channel, "List");
  ASSERT_TRUE(List(channel).ok());  // what came before it on this connection has gone in

  kill(program_.pid(), SIGTERM);
  ASSERT_TRUE(Eventually([&] { return program_.Log().find("stopping calls=") != std::string::npos; }));
  EXPECT_EQ(List(Dial(alice_)).code(), absl::StatusCode::kUnavailable);

  EXPECT_EQ(running.Ask(), absl::OkStatus());
  const int status = program_.Stop(0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(GatekeeperProgram, AJobManagerThatIsStoppedAnswersWhatItWasAsked) {
  const auto channel = Dial(alice_);
  SlowQuestion list(channel, "List");
  SlowQuestion input(channel, "Input");  // which runs inside before it has said for which job
  ASSERT_TRUE(List(channel).ok());

  const pid_t first = StopTheBusyJobManager();

  EXPECT_EQ(list.Ask(), absl::OkStatus());
  EXPECT_THAT(Message(input.Ask()), HasSubstr("there is no job ''"));
  EXPECT_TRUE(Eventually([&] { return List(channel).ok() && JobManagers().at(0) != first; }));
}

TEST_F(GatekeeperProgram, ACallThatComesWhileAJobManagerEndsWaitsForTheNext) {
  const auto channel = Dial(alice_);
  SlowQuestion input(channel, "Input");
  ASSERT_TRUE(List(channel).ok());
  const pid_t first = StopTheBusyJobManager();

  SlowQuestion late(channel, "List");
  EXPECT_THAT(Message(input.Ask()), HasSubstr("there is no job ''"));

  EXPECT_EQ(late.Ask(), absl::OkStatus());
  EXPECT_NE(JobManagers().at(0), first);
}

// The ends of calls cross the answers.  If the jobmanager closed the connection after the last of
// these, an end that comes then would take with it (EPIPE) what the gatekeeper has not read yet.
TEST_F(GatekeeperProgram, AJobManagerThatIsStoppedLosesNoAnswerToTheEndOfACall) {
  const auto channel = Dial(alice_);
  pid_t last = 0;
  for (int round = 0; round < 5 && !HasFailure(); ++round) {
    ASSERT_TRUE(Eventually([&] { return List(channel).ok() && JobManagers().at(0) != last; }));
    std::list<SlowQuestion> questions;
    for (int i = 0; i < 100; ++i) {
      questions.emplace_back(channel, "Input");
    }
    EXPECT_TRUE(List(channel).ok());
    last = StopTheBusyJobManager();

    for (auto& question : questions) {
      question.Send();
    }

    for (auto& question : questions) {
      EXPECT_THAT(Message(question.Answer()), HasSubstr("there is no job ''")) << "round " << round;
    }
  }
}

TEST_F(GatekeeperProgram, TellsAnUnmappedSubjectWhomToAskAndMapsItWithoutARestart) {
  const auto bob = ca_.IssueUser("/C=JP/O=Test/CN=Bob");
  const auto channel = Dial(bob);

  const absl::Status refused = List(channel);

  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(GramCode(refused), 7);
  EXPECT_EQ(Message(refused), fmt::format("site siteA has no account for \"/C=JP/O=Test/CN=Bob\": not in its {}",
                                          File("grid-mapfile")));
  EXPECT_THAT(Remedy(refused), HasSubstr("to add the line: \"/C=JP/O=Test/CN=Bob\" ACCOUNT"));
  EXPECT_TRUE(JobManagers().empty());

  std::ofstream(File("grid-mapfile"), std::ios::app) << "\"/C=JP/O=Test/CN=Bob\" " << account_ << "\n";
  EXPECT_TRUE(Eventually([&] { return List(channel).ok(); }));
}

TEST_F(GatekeeperProgram, RefusesLimitedProxiesUnknownServicesAndForeignAuthorities) {
  test::ProxyShape limited;
  limited.language = "1.3.6.1.4.1.3536.1.1.1.9";
  limited.not_before = tls::SystemClock() - std::chrono::minutes(5);
  limited.not_after = tls::SystemClock() + std::chrono::hours(1);
  const absl::Status by_limited = List(Dial(test::MakeProxy(alice_, limited)));
  EXPECT_EQ(by_limited.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(Message(by_limited), HasSubstr("does not accept limited proxies"));

  const absl::Status unknown = List(Dial(alice_), "jobmanager-lsf");
  EXPECT_EQ(GramCode(unknown), 93);
  EXPECT_EQ(Remedy(unknown), "use one of: jobmanager, jobmanager-agent");

  const test::TestCa other("/C=JP/O=Other/CN=CA");
  const absl::Status foreign = List(Dial(other.IssueUser("/C=JP/O=Test/CN=Alice")));
  EXPECT_EQ(foreign.code(), absl::StatusCode::kUnauthenticated);

  EXPECT_TRUE(JobManagers().empty());
  EXPECT_TRUE(Eventually([this] {
    const std::string audit = ReadFile(File("audit.log"));
    return std::count(audit.begin(), audit.end(), '\n') == 3;
  }));
  EXPECT_THAT(ReadFile(File("audit.log")),
              HasSubstr("subject=\"/C=JP/O=Test/CN=Alice\" account=\"\" service=\"jobmanager-lsf\" "
                        "method=\"/sekisho.proto.JobService/List\" status=FAILED_PRECONDITION"));
}

// Alice is known and mapped; what she sends is hostile all the same.
TEST_F(GatekeeperProgram, RefusesAMessageOverFourMebibytesAndKeepsNothingOfIt) {
  const auto channel = Dial(alice_);
  ASSERT_TRUE(List(channel).ok());
  test::ExpectLargeMessagesRefused(program_, channel, "/sekisho.proto.JobService/Submit");
  EXPECT_TRUE(List(channel).ok());
}

TEST_F(GatekeeperProgram, ServesNobodyWhileItsAuditLogIsFullAndLosesNoLine) {
  fs::remove(File("audit.log"));
  fs::create_symlink("/dev/full", File("audit.log"));
  kill(program_.pid(), SIGHUP);
  int served = 0;  // before it was noticed
  absl::Status status;
  ASSERT_TRUE(Eventually([&] {
    status = List(Dial(alice_));
    served += status.ok();
    return !status.ok();
  }));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Message(status), HasSubstr("cannot keep its audit log"));

  fs::remove(File("audit.log"));
  kill(program_.pid(), SIGHUP);

  ASSERT_TRUE(Eventually([&] { return List(Dial(alice_)).ok(); }));
  EXPECT_TRUE(Eventually([&] {
    const std::string audit = ReadFile(File("audit.log"));
    return std::count(audit.begin(), audit.end(), '\n') >= served + 2 &&
           audit.find("status=UNAVAILABLE") != std::string::npos;
  })) << ReadFile(File("audit.log"));
}

// The first message of a TLS client, whole: a server makes its keys, its certificate's message and its signature for it.
std::string ClientHello() {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> client(SSL_new(context.get()), SSL_free);
  SSL_set_alpn_protos(client.get(), reinterpret_cast<const unsigned char*>("\x02h2"), 3);
  BIO* const out = BIO_new(BIO_s_mem());
  SSL_set_bio(client.get(), BIO_new(BIO_s_mem()), out);
  SSL_connect(client.get());  // waits for the answer
  std::string hello(BIO_pending(out), '\0');
  BIO_read(out, hello.data(), static_cast<int>(hello.size()));
  return hello;
}

// Holds `count` connections to a port of loopback that never go on: a third says nothing, a third says a whole `hello` of
// TLS and takes no more part, a third begins one and stops, or speaks something else.  They are a process of their own,
// since one process may not be allowed as many descriptors as an attacker has connections.
class HangingConnections {
 public:
  HangingConnections(int port, int count, std::string_view hello) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      return;
    }
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {  // only what is safe after a fork from among threads
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) {
        _exit(1);
      }
      close(ends[0]);
      const int opened = Open(port, count, hello);
      if (write(ends[1], &opened, sizeof(opened)) == sizeof(opened)) {
        pause();
      }
      _exit(1);
    }
    close(ends[1]);
    if (pid_ < 0 || read(ends[0], &opened_, sizeof(opened_)) != sizeof(opened_)) {
      opened_ = 0;
    }
    close(ends[0]);
  }
  HangingConnections(const HangingConnections&) = delete;
  HangingConnections& operator=(const HangingConnections&) = delete;
  ~HangingConnections() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }

  [[nodiscard]] int opened() const { return opened_; }

 private:
  static int Open(int port, int count, std::string_view hello) {
    const std::string_view begun("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), other("GET / HTTP/1.1\r\n\r\n");
    const std::array<std::string_view, 6> first_words = {"", hello, begun, "", hello, other};
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(port));
    for (int i = 0; i < count; ++i) {
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in from{};  // 28,000 local ports of one address could run out
      from.sin_family = AF_INET;
      from.sin_addr.s_addr = htonl(0x7f000001U + static_cast<uint32_t>(i % 20));
      if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&from), sizeof(from)) != 0 ||
          connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0) {
        return i;
      }
      const std::string_view words = first_words[static_cast<size_t>(i) % first_words.size()];
      send(fd, words.data(), words.size(), MSG_NOSIGNAL);
    }
    return count;
  }

  pid_t pid_ = -1;
  int opened_ = 0;
};

TEST_F(GatekeeperProgram, ServesAGoodClientWhileTwentyThousandConnectionsHang) {
  constexpr int kProcesses = 10;
  constexpr int kEach = 2'000;
  ASSERT_TRUE(List(Dial(alice_)).ok());
  const std::string hello = ClientHello();
  ASSERT_GT(hello.size(), 200u);

  std::list<HangingConnections> hanging;
  double slowest_ms = 0;
  for (int i = 0; i < kProcesses; ++i) {
    ASSERT_EQ(hanging.emplace_back(port_, kEach, hello).opened(), kEach) << i;
    const auto begun = Clock::now();
    EXPECT_TRUE(List(Dial(alice_)).ok());
    slowest_ms = std::max(slowest_ms, std::chrono::duration<double, std::milli>(Clock::now() - begun).count());
  }

  const auto descriptors = std::distance(fs::directory_iterator(fmt::format("/proc/{}/fd", program_.pid())), {});
  const long resident_kib = program_.ResidentKib();
  std::printf("%d hanging connections: good client at most %.0f ms, %ld descriptors, %ld MiB resident\n",
              kProcesses * kEach, slowest_ms, static_cast<long>(descriptors), resident_kib / 1024);
  EXPECT_LT(descriptors, 2 * 1024 + 200);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose own memory counts, too
  EXPECT_LT(resident_kib, 256 * 1024);
#endif
}

}  // namespace
}  // namespace sekisho::gatekeeper
