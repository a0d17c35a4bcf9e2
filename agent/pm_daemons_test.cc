// SPDX-License-Identifier: Apache-2.0
// Who asks for a job's sekisho-pmd, and what its account may have put in the place of the daemon's socket.
#include "agent/pm_daemons.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <pwd.h>

#include "agent/task_directory.h"
#include "tests/support/eventually.h"
#include "tests/support/test_ca.h"

namespace sekisho::agent {
namespace {

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

// As libpm does.
class Asker {
 public:
  Asker(const std::string& door, const std::string& job_id)
      : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_un address = AddressOf(door);
    const std::string line = job_id + "\n";
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(send(fd_, line.data(), line.size(), 0), static_cast<ssize_t>(line.size()));
  }
  ~Asker() { close(fd_); }
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

  // Until now.
  const std::string& Heard() {
    char buffer[256];
    for (ssize_t size = 0; (size = recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT)) > 0;) {
      heard_.append(buffer, static_cast<size_t>(size));
    }
    return heard_;
  }

 private:
  const int fd_;
  std::string heard_;
};

class PmDaemonsTest : public ::testing::Test {
 protected:
  static constexpr char kJob[] = "job";

  void SetUp() override {
    std::signal(SIGCHLD, SIG_IGN);  // supervisors leave us at once, as with agents
    chmod(directory_.path().c_str(), 0755);
    test::WriteFile(directory_.File("silent-pmd"), "#!/bin/sh\nexec sleep 1000\n", 0755);
    const passwd* account = getuid() == 0 ? getpwnam("games") : getpwuid(getuid());
    asking_.job_id = kJob;
    asking_.account = account->pw_name;
    asking_.uid = account->pw_uid;
    asking_.gid = account->pw_gid;
    daemons_.emplace(
        loop_, watcher_,
        PmDaemons::Settings{.program = directory_.File("silent-pmd"),
                            .folder = directory_.File("pm.d"),
                            .state_directory = directory_.File("state"),
                            .task_program = std::string(std::getenv("SEKISHO_BIN")) + "/sekisho-task",
                            .node = {.boot_id = "boot-1"}},
        [this](const std::string& job_id) { return job_id == kJob ? &asking_ : nullptr; });
    ASSERT_TRUE(daemons_->Recover(proto::AgentMessage::Hello()).ok());
    ASSERT_TRUE(daemons_->Listen(directory_.File("door")).ok());
  }

  void TearDown() override {
    proto::ServerMessage message;
    message.mutable_forget()->set_job_id(kJob);
    daemons_->Handle(message);
    EXPECT_TRUE(Await([&] { return ListTaskDirectories(directory_.File("state")).empty(); }));
    Drain();  // those who were answered are done with it
    daemons_.reset();
    Drain();
  }

  template <typename Condition>
  [[nodiscard]] bool Await(Condition is_true) {
    return test::EventuallyOn(loop_, is_true);
  }
  void Drain() {
    loop_.restart();
    loop_.poll();
  }
  std::unique_ptr<Asker> Ask(const std::string& job_id) {
    return std::make_unique<Asker>(directory_.File("door"), job_id);
  }
  std::string Socket() const { return directory_.File(std::string("pm.d/") + kJob + "/pmd"); }
  // As the daemon does, what was made beside it.
  void Rename() { EXPECT_EQ(rename((Socket() + "~").c_str(), Socket().c_str()), 0); }
  void PutLink(const std::string& target) {
    EXPECT_EQ(symlink(target.c_str(), (Socket() + "~").c_str()), 0);
    Rename();
  }
  void PutSocket() {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un address = AddressOf(Socket() + "~");
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    close(fd);  // its name stays
    Rename();
  }

  // What those hear who asked before and after a link to `target` was put in the place of the socket.
  void ExpectNothingOf(const std::string& target) {
    const auto early = Ask(kJob);
    ASSERT_TRUE(Await([&] { return std::filesystem::exists(std::filesystem::path(Socket()).parent_path()); }));
    PutLink(target);
    const auto late = Ask(kJob);
    const auto last = Ask("another");
    ASSERT_TRUE(Await([&] { return !last->Heard().empty(); }));  // so the others have been seen to, too
    EXPECT_EQ(early->Heard(), "");
    EXPECT_EQ(late->Heard(), "");

    PutSocket();
    EXPECT_TRUE(Await([&] { return early->Heard() == Socket() + "\n" && late->Heard() == Socket() + "\n"; }))
        << early->Heard() << late->Heard();
  }

  Loop loop_{1};
  test::TemporaryDirectory directory_;
  Watcher watcher_{loop_};
  task::Spec asking_;
  std::optional<PmDaemons> daemons_;
};

TEST_F(PmDaemonsTest, ALinkInPlaceOfTheSocketSaysNothingOfAFileThatExists) {
  test::WriteFile(directory_.File("secret"), "");

  ExpectNothingOf(directory_.File("secret"));
}

TEST_F(PmDaemonsTest, NorOfOneThatDoesNot) { ExpectNothingOf(directory_.File("no-such")); }

TEST_F(PmDaemonsTest, WhoAsksForAJobWithoutATaskHereIsRefused) {
  const auto stranger = Ask("another");

  EXPECT_TRUE(Await([&] { return stranger->Heard() == "!no running task of this account's belongs to the job\n"; }))
      << stranger->Heard();
}

}  // namespace
}  // namespace sekisho::agent
