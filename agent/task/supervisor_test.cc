// SPDX-License-Identifier: Apache-2.0
// sekisho-task with real processes, in every grouping that this machine offers.
#include "agent/task/supervisor.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pwd.h>
#include <spawn.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "agent/task/record.h"

namespace sekisho::agent::task {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A cgroup directory of ours, or empty where the machine has none of that kind.
std::string CgroupRoot(Grouping grouping) {
  const char* v2 = std::filesystem::exists("/sys/fs/cgroup/cgroup.procs")
                       ? "/sys/fs/cgroup"
                       : "/sys/fs/cgroup/unified";
  const std::string parent = grouping == Grouping::kV2 ? v2 : "/sys/fs/cgroup/freezer";
  const std::string path = parent + "/sekisho-test-" + std::to_string(getpid());
  return mkdir(path.c_str(), 0755) == 0 || errno == EEXIST ? path : "";
}

class SupervisorTest : public ::testing::TestWithParam<Grouping> {
 protected:
  static void SetUpTestSuite() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

  void SetUp() override {
    char path[] = "/tmp/sekisho-task-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    root_ = path;
    chmod(path, 0755);
    dir_ = root_ + "/task";
    home_ = root_ + "/home";
    mkdir(dir_.c_str(), 0711);
    mkdir(home_.c_str(), 0755);
    spec_.job_id = "job";
    spec_.argument = {"/bin/true"};
    spec_.environment = {"PATH=/usr/bin:/bin"};
    spec_.directory = home_;
    spec_.account = getuid() == 0 ? "games" : "self";
    spec_.uid = getuid();
    spec_.gid = getgid();
    if (getuid() == 0) {
      const passwd* account = getpwnam("games");
      spec_.uid = account->pw_uid;
      spec_.gid = account->pw_gid;
      spec_.groups = {account->pw_gid};
      ASSERT_EQ(chown(home_.c_str(), spec_.uid, spec_.gid), 0);
    }
    spec_.grouping = GetParam();
    if (spec_.grouping != Grouping::kNone) {
      cgroup_root_ = CgroupRoot(spec_.grouping);
      if (cgroup_root_.empty()) {
        GTEST_SKIP() << "no cgroups " << Name(spec_.grouping);
      }
      spec_.cgroup = cgroup_root_ + "/job.0";
    }
  }

  void TearDown() override {
    while (waitpid(-1, nullptr, 0) > 0) {  // supervisors that are done but for exiting
    }
    if (!cgroup_root_.empty()) {
      EXPECT_FALSE(std::filesystem::exists(spec_.cgroup)) << "the task's cgroup is left behind";
      rmdir(cgroup_root_.c_str());
    }
    if (watch_ >= 0) {
      close(watch_);
    }
    std::filesystem::remove_all(root_);
  }

  void Shell(const std::string& script) { spec_.argument = {"/bin/sh", "-c", script}; }

  void Launch() {
    watch_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    inotify_add_watch(watch_, dir_.c_str(), IN_MOVED_TO | IN_MODIFY);
    inotify_add_watch(watch_, home_.c_str(), IN_CREATE | IN_MODIFY | IN_MOVED_TO);
    const int fd = open(dir_.c_str(), O_RDONLY | O_DIRECTORY);
    ASSERT_TRUE(WriteFile(fd, kSpecFile, EncodeSpec(spec_), Durability::kProcess));
    close(fd);
    Spawn();
  }

  void Spawn() {
    const std::string program = std::string(std::getenv("SEKISHO_BIN")) + "/sekisho-task";
    const char* argv[] = {"sekisho-task", dir_.c_str(), nullptr};
    pid_t pid = 0;
    ASSERT_EQ(
        posix_spawn(&pid, program.c_str(), nullptr, nullptr, const_cast<char**>(argv), environ), 0);
    waitpid(pid, nullptr, 0);
  }

  // Until `is_true`, looking again whenever a file of the task changes.
  template <typename Condition>
  [[nodiscard]] bool Await(Condition is_true) {
    for (int waited = 0; !is_true(); ++waited) {
      pollfd changed{watch_, POLLIN, 0};
      if (waited > 20000 || poll(&changed, 1, 20000) <= 0) {
        return false;
      }
      char events[4096];
      while (read(watch_, events, sizeof events) > 0) {
      }
    }
    return true;
  }
  bool Has(const char* name) { return std::filesystem::exists(dir_ + "/" + name); }
  std::string Spooled(const char* name) { return TextOf(dir_ + "/" + name); }
  bool AwaitOutput(const std::string& text) {
    return Await([&] { return Spooled(kStdoutFile).find(text) != std::string::npos; });
  }

  Ended AwaitEnd() {
    EXPECT_TRUE(Await([&] { return Has(kExitFile); }));
    const auto ended = DecodeEnded(TextOf(dir_ + "/exit"));
    EXPECT_TRUE(ended);
    return ended.value_or(Ended{});
  }
  Ended RunToEnd() {
    Launch();
    return AwaitEnd();
  }

  Running Now() { return DecodeRunning(TextOf(dir_ + "/pid")).value_or(Running{}); }
  void Tell(const Order& order) {
    sigval argument{};
    argument.sival_int = PackOrder(order);
    ASSERT_EQ(sigqueue(Now().supervisor, OrderSignal(), argument), 0);
  }
  static bool IsAlive(pid_t pid) {
    Stat stat;
    return ParseStat(TextOf("/proc/" + std::to_string(pid) + "/stat"), stat) && stat.state != 'Z';
  }

  Spec spec_;
  std::string root_;
  std::string dir_;
  std::string home_;
  std::string cgroup_root_;
  int watch_ = -1;
};

TEST_P(SupervisorTest, ReportsExitCodesAndSignals) {
  Shell("exit 7");
  const Ended ended = RunToEnd();

  EXPECT_EQ(ended.code, 7);
  EXPECT_EQ(ended.signal, 0);
  EXPECT_EQ(ended.gram_code, 0);
  EXPECT_GT(ended.time_ms, 0);
  EXPECT_GT(ended.max_rss_kb, 0);
}

TEST_P(SupervisorTest, ReportsTheSignalThatEndedIt) {
  Shell("kill -SEGV $$");

  EXPECT_EQ(RunToEnd().signal, SIGSEGV);
}

TEST_P(SupervisorTest, RunsAsTheAccountWithItsEnvironmentOnly) {
  spec_.umask = 027;
  spec_.environment = {"PATH=/usr/bin:/bin", "A=b c"};
  Shell("id -u; id -G; umask; pwd; env | sort; cat; echo e >&2");

  EXPECT_EQ(RunToEnd().code, 0);
  const std::string group = std::to_string(spec_.gid);
  EXPECT_THAT(Spooled(kStdoutFile),
              HasSubstr(std::to_string(spec_.uid) + "\n" + (getuid() == 0 ? group + "\n" : "")));
  EXPECT_THAT(Spooled(kStdoutFile), HasSubstr("0027\n" + home_ + "\nA=b c\nPATH="));
  EXPECT_EQ(Spooled(kStdoutFile).find("LD_"), std::string::npos);
  EXPECT_EQ(Spooled(kStderrFile), "e\n");
}

TEST_P(SupervisorTest, InheritsNothingButTheStandardStreams) {
  Shell("ls /proc/self/fd | tr '\\n' ' '; grep -E 'Sig(Blk|Ign)' /proc/self/status");  // 32 and 33
                                                                                       // are the C
                                                                                       // library's

  EXPECT_EQ(RunToEnd().code, 0);
  EXPECT_THAT(
      Spooled(kStdoutFile),
      ::testing::ContainsRegex("^0 1 2 3 SigBlk:\t0000000000000000\nSigIgn:\t0000000[01]80000000|"
                               "0 1 2 3 SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000"));
}

TEST_P(SupervisorTest, StandardStreamsCanBeOpenedByName) {
  Shell("echo a >> /dev/stdout; echo b >> /dev/stderr");

  EXPECT_EQ(RunToEnd().code, 0);
  EXPECT_EQ(Spooled(kStdoutFile), "a\n");
  EXPECT_EQ(Spooled(kStderrFile), "b\n");
}

TEST_P(SupervisorTest, PathsOfStreamsAreTheAccountsAndRelativeToTheDirectory) {
  std::ofstream(home_ + "/in") << "input";
  std::ofstream(home_ + "/out") << "old and long";
  ASSERT_EQ(chown((home_ + "/out").c_str(), spec_.uid, spec_.gid), 0);
  spec_.stdin_path = "in";
  spec_.stdout_path = spec_.stderr_path = "out";
  Shell("cat; echo e >&2");

  EXPECT_EQ(RunToEnd().code, 0);
  EXPECT_EQ(TextOf(home_ + "/out"), "inpute\n");
}

TEST_P(SupervisorTest, AppendsWhenToldTo) {
  std::ofstream(home_ + "/out") << "first ";
  ASSERT_EQ(chown((home_ + "/out").c_str(), spec_.uid, spec_.gid), 0);
  spec_.stdout_path = "out";
  spec_.append_output = true;
  Shell("echo second");

  EXPECT_EQ(RunToEnd().code, 0);
  EXPECT_EQ(TextOf(home_ + "/out"), "first second\n");
}

struct BadStart {
  const char* what;
  void (*change)(Spec&);
  int code;
  const char* reason;
};

TEST_P(SupervisorTest, SaysWhyATaskCannotStart) {
  std::ofstream(root_ + "/plain") << "#!/no/such/interpreter\n";
  chmod((root_ + "/plain").c_str(), 0644);
  std::ofstream(root_ + "/script") << "#!/no/such/interpreter\n";
  chmod((root_ + "/script").c_str(), 0755);
  std::ofstream(root_ + "/text") << "not a program";
  chmod((root_ + "/text").c_str(), 0755);
  static std::string root;
  root = root_;
  const BadStart table[] = {
      {"absent", [](Spec& s) { s.argument[0] = "/no/such"; }, 5,
       "executable /no/such: No such file or directory"},
      {"absent name", [](Spec& s) { s.argument[0] = "no-such"; }, 5,
       "executable no-such: No such file"},
      {"none", [](Spec& s) { s.argument.clear(); }, 81, "no executable given"},
      {"mode", [](Spec& s) { s.argument[0] = root + "/plain"; }, 72, "Permission denied"},
      {"directory", [](Spec& s) { s.argument[0] = "/tmp"; }, 72, "executable /tmp: is a directory"},
      {"interpreter", [](Spec& s) { s.argument[0] = root + "/script"; }, 72, "interpreter"},
      {"format", [](Spec& s) { s.argument[0] = root + "/text"; }, 72, "neither a program"},
      {"cwd", [](Spec& s) { s.directory = "/no/dir"; }, 4,
       "cannot enter directory /no/dir: No such file or directory"},
      {"stdin", [](Spec& s) { s.stdin_path = "/no/in"; }, 11,
       "cannot read standard input from /no/in: No such file or directory"},
      {"stdout", [](Spec& s) { s.stdout_path = "/no/out"; }, 73,
       "cannot write standard output to /no/out: No such file or directory"},
      {"stderr", [](Spec& s) { s.stderr_path = "/no/err"; }, 74,
       "cannot write standard error to /no/err: No such file or directory"},
      {"size", [](Spec& s) { s.argument.emplace_back(200 << 10, 'x'); }, 46, "too long"},
  };
  const Spec good = spec_;
  for (const BadStart& bad : table) {
    SCOPED_TRACE(bad.what);
    std::filesystem::remove_all(dir_);
    mkdir(dir_.c_str(), 0711);
    spec_ = good;
    bad.change(spec_);

    const Ended ended = RunToEnd();

    EXPECT_EQ(ended.gram_code, bad.code);
    EXPECT_THAT(ended.reason, HasSubstr(bad.reason));
    close(watch_);
    watch_ = -1;
  }
}

TEST_P(SupervisorTest, RefusesRootAndOtherAccountsThanItMayBecome) {
  spec_.uid = getuid() == 0 ? 0 : 1;
  spec_.account = "other";

  const Ended ended = RunToEnd();

  EXPECT_EQ(ended.gram_code, kInvalidUserName);
  EXPECT_THAT(ended.reason, HasSubstr("account other"));
}

TEST_P(SupervisorTest, CheckLeavesNoTrace) {
  spec_.check_only = true;
  spec_.stdout_path = "new";
  Shell("touch ran");
  EXPECT_EQ(RunToEnd().gram_code, 0);

  EXPECT_TRUE(std::filesystem::is_empty(home_));
}

TEST_P(SupervisorTest, CheckFindsWhatAStartWouldFind) {
  spec_.check_only = true;
  spec_.stdout_path = "/no/out";

  EXPECT_EQ(RunToEnd().gram_code, 73);
}

TEST_P(SupervisorTest, KillsWhatTheTaskLeavesBehind) {
  Shell("(setsid sh -c 'echo $$ > pid; exec sleep 1000' &) ; while [ ! -s pid ]; do :; done");
  EXPECT_EQ(RunToEnd().code, 0);

  const pid_t left = std::atoi(TextOf(home_ + "/pid").c_str());
  ASSERT_GT(left, 0);
  EXPECT_FALSE(IsAlive(left));
}

TEST_P(SupervisorTest, KillReachesDoubleForksThatIgnoreSigterm) {
  Shell(
      "trap '' TERM; (setsid setsid sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 100; "
      "done' &) ;"
      "while [ ! -s pid ]; do :; done; echo ready; while :; do sleep 100; done");
  Launch();
  ASSERT_TRUE(AwaitOutput("ready"));

  Tell({Command::kKill, SIGTERM, 50});

  EXPECT_EQ(AwaitEnd().signal, SIGKILL);
  EXPECT_FALSE(IsAlive(std::atoi(TextOf(home_ + "/pid").c_str())));
}

TEST_P(SupervisorTest, KillGivesTimeToEndWell) {
  Shell("trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done");
  Launch();
  ASSERT_TRUE(AwaitOutput("ready"));

  Tell({Command::kKill, SIGTERM, 20000});

  EXPECT_EQ(AwaitEnd().code, 3);
  EXPECT_THAT(Spooled(kStdoutFile), HasSubstr("bye"));
}

TEST_P(SupervisorTest, WallTimeLimitEndsItAndSaysSo) {
  spec_.wall_limit_ms = 200;
  spec_.grace_ms = 50;
  Shell("trap '' TERM; while :; do sleep 0.01; done");

  const Ended ended = RunToEnd();

  EXPECT_EQ(ended.signal, SIGKILL);
  EXPECT_EQ(ended.gram_code, kExecutionFailed);
  EXPECT_EQ(ended.reason, "wall-time limit of 0.200 s reached");
}

TEST_P(SupervisorTest, CpuTimeLimitEndsItAndSaysSo) {
  spec_.cpu_limit_s = 1;
  Shell("while :; do :; done");

  const Ended ended = RunToEnd();

  EXPECT_EQ(ended.signal, SIGXCPU);
  EXPECT_EQ(ended.reason, "CPU-time limit of 1 s reached");
  EXPECT_THAT(ended.cpu_ms, AllOf(Ge(900), Le(3000)));
}

TEST_P(SupervisorTest, MemoryLimitIsEnforced) {
  spec_.memory_limit_mb = 64;
  spec_.argument = {"/usr/bin/perl", "-e", "$x = 'x' x (200 << 20); print length $x"};

  EXPECT_NE(RunToEnd().code, 0);
  EXPECT_EQ(Spooled(kStdoutFile), "");
}

TEST_P(SupervisorTest, StoppedTaskDoesNothingUntilResumed) {
  Shell("echo ready; read x; echo go");
  spec_.has_input = true;
  spec_.wall_limit_ms = 10000;
  Launch();
  ASSERT_TRUE(AwaitOutput("ready"));
  const auto feed = [&] {
    std::ofstream(dir_ + "/input", std::ios::app) << "line\n";
    Tell({Command::kInputEnd});
  };

  Tell({Command::kStop});
  feed();
  EXPECT_TRUE(Await([&] { return Spooled(kInputTaken).find("5\n") != std::string::npos; }));
  const bool was_silent = Spooled(kStdoutFile) == "ready\n";
  Tell({Command::kResume});

  EXPECT_EQ(AwaitEnd().code, 0);
  EXPECT_TRUE(was_silent);
  EXPECT_EQ(Spooled(kStdoutFile), "ready\ngo\n");
}

TEST_P(SupervisorTest, StoppedTaskCanBeKilled) {
  Shell("trap 'exit 4' TERM; echo ready; while :; do sleep 0.01; done");
  Launch();
  ASSERT_TRUE(AwaitOutput("ready"));
  Tell({Command::kStop});

  Tell({Command::kKill, SIGTERM, 20000});

  EXPECT_EQ(AwaitEnd().code, 4);
}

TEST_P(SupervisorTest, InputArrivesWholeAndEnds) {
  spec_.has_input = true;
  Shell("md5sum; echo done");
  const std::string data(3 << 20, 'q');
  std::ofstream(dir_ + "/input") << data.substr(0, 1 << 20);
  Launch();
  ASSERT_TRUE(Await([&] { return Has(kPidFile) && Now().main > 0; }));
  std::ofstream(dir_ + "/input", std::ios::app) << data.substr(1 << 20);
  Tell({Command::kInputEnd});

  EXPECT_EQ(AwaitEnd().code, 0);
  EXPECT_EQ(Spooled(kInputTaken), "00000000000003145728\n");
  EXPECT_THAT(Spooled(kStdoutFile), HasSubstr("3d7a67ddfed3939e2f2def60695de49d  -\ndone"));
}

TEST_P(SupervisorTest, InputThatNobodyReadsDoesNotHurt) {
  spec_.has_input = true;
  Shell("exec <&-; echo closed; while [ ! -e go ]; do sleep 0.01; done");
  Launch();
  ASSERT_TRUE(AwaitOutput("closed"));

  std::ofstream(dir_ + "/input", std::ios::app) << "nobody reads this";
  Tell({Command::kInput});
  EXPECT_TRUE(
      Await([&] { return Spooled(kInputTaken).find("9223372036854775807") != std::string::npos; }));
  std::ofstream(home_ + "/go") << "";

  EXPECT_EQ(AwaitEnd().code, 0);
}

TEST_P(SupervisorTest, ForkStormIsBoundedAndKilled) {
  spec_.process_limit = 60;
  Shell("echo ready; f() { f | f & }; while :; do f; sleep 0.01; done 2>/dev/null");
  Launch();
  ASSERT_TRUE(AwaitOutput("ready"));

  Tell({Command::kKill, SIGKILL, 0});

  EXPECT_EQ(AwaitEnd().signal, SIGKILL);
}

TEST_P(SupervisorTest, NeverRunsATaskTwice) {
  Shell("echo once >> ran; echo ready; while [ ! -e go ]; do sleep 0.01; done");
  Launch();
  ASSERT_TRUE(AwaitOutput("ready"));

  Spawn();
  std::ofstream(home_ + "/go") << "";
  AwaitEnd();
  Spawn();

  EXPECT_EQ(TextOf(home_ + "/ran"), "once\n");
}

TEST_P(SupervisorTest, SupervisorsDeathEndsTheTask) {
  Shell("echo ready; exec sleep 1000");
  Launch();
  ASSERT_TRUE(AwaitOutput("ready"));
  ASSERT_TRUE(Await([&] { return Now().main > 0; }));
  const Running running = Now();

  kill(running.supervisor, SIGKILL);

  for (int i = 0; i < 500 && IsAlive(running.main); ++i) {
    poll(nullptr, 0, 10);
  }
  EXPECT_FALSE(IsAlive(running.main));
  if (!spec_.cgroup.empty()) {
    EXPECT_TRUE(Group(spec_.grouping, spec_.cgroup, 0).Remove());
  }
}

INSTANTIATE_TEST_SUITE_P(Grouping, SupervisorTest,
                         ::testing::Values(Grouping::kNone, Grouping::kV1, Grouping::kV2),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace sekisho::agent::task
