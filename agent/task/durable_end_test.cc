// SPDX-License-Identifier: Apache-2.0
// How a task ended is on the disk before anybody may see it: what a supervisor syncs and names, in order.  This
// program's own fdatasync, fsync and renameat stand before the C library's, and tell.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <cstring>

#include "agent/task/supervisor.h"
#include "agent/task/supervisor_fixture.h"

namespace {

struct Steps {  // of this process and of those that it forks
  size_t count;
  char text[16][64];
};
Steps* steps = nullptr;

int Tell(int result, const char* what, const std::string& name) {
  if (result == 0 && steps != nullptr && steps->count < std::size(steps->text)) {
    snprintf(steps->text[steps->count++], sizeof steps->text[0], "%s %s", what, name.c_str());
  }
  return result;
}

std::string NameOf(int fd) {
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)).filename();
}

}  // namespace

extern "C" {
int fdatasync(int fd) { return Tell(static_cast<int>(syscall(SYS_fdatasync, fd)), "sync", NameOf(fd)); }
int fsync(int fd) { return Tell(static_cast<int>(syscall(SYS_fsync, fd)), "sync", NameOf(fd)); }
int renameat(int from_fd, const char* from, int to_fd, const char* to) noexcept {
  return Tell(static_cast<int>(syscall(SYS_renameat2, from_fd, from, to_fd, to, 0)), "name", to);
}
}

namespace sekisho::agent::task {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class DurableEndTest : public SupervisorTest {
 protected:
  void SetUp() override {
    SupervisorTest::SetUp();
    steps = static_cast<Steps*>(
        mmap(nullptr, sizeof(Steps), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(steps, MAP_FAILED);
  }
  void TearDown() override {
    SupervisorTest::TearDown();
    munmap(std::exchange(steps, nullptr), sizeof(Steps));
  }

  // Of a task that ends with code 7.
  void Supervise() {
    Shell("exit 7");
    watch_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    inotify_add_watch(watch_, dir_.c_str(), IN_MOVED_TO);
    const int dir = open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    supervisor_ = fork();
    if (supervisor_ == 0) {
      setsid();  // as sekisho-task does: its task asks who leads its session
      Supervisor(spec_, dir).Run();
      _exit(0);
    }
    close(dir);
  }
  static std::vector<std::string> Taken() { return {steps->text, steps->text + steps->count}; }

  pid_t supervisor_ = 0;
};

TEST_P(DurableEndTest, IsSyncedBeforeItHasItsNameAndItsNameBeforeTheSupervisorGoes) {
  Supervise();
  waitpid(supervisor_, nullptr, 0);

  EXPECT_EQ(DecodeEnded(TextOf(dir_ + "/exit")).value_or(Ended{}).code, 7);
  EXPECT_THAT(Taken(), ElementsAre("name pid", "sync .exit.new", "name exit", "sync task"));
}

TEST_P(DurableEndTest, ThatIsSyncedLateIsSeenFirstAndSyncedAllTheSame) {
  spec_.syncs_late = true;
  Supervise();
  ASSERT_TRUE(Await([&] { return Has("exit"); }));
  EXPECT_THAT(Taken(), Not(Contains(HasSubstr("sync"))));
  waitpid(supervisor_, nullptr, 0);

  EXPECT_EQ(DecodeEnded(TextOf(dir_ + "/exit")).value_or(Ended{}).code, 7);
  EXPECT_THAT(Taken(), ElementsAre("name pid", "name exit", "sync exit", "sync task"));
}

TEST_P(DurableEndTest, ThatWasForgottenMeanwhileIsNotWaitedFor) {
  spec_.syncs_late = true;
  Supervise();
  ASSERT_TRUE(Await([&] { return Has("exit"); }));
  std::filesystem::remove_all(dir_);
  waitpid(supervisor_, nullptr, 0);

  EXPECT_THAT(Taken(), ElementsAre("name pid", "name exit"));
}

INSTANTIATE_TEST_SUITE_P(, DurableEndTest, ::testing::Values(Grouping::kNone));

}  // namespace
}  // namespace sekisho::agent::task
