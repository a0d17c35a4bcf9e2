// SPDX-License-Identifier: Apache-2.0
// How tasks start: account, streams, limits, and why they cannot.
#include "agent/task/supervisor_fixture.h"
#include "tests/support/full_disk.h"

namespace sekisho::agent::task {
namespace {

class SupervisorStartTest : public SupervisorTest {};

using ::testing::HasSubstr;

TEST_P(SupervisorStartTest, ReportsExitCodesAndSignals) {
  Shell("exit 7");
  const Ended ended = RunToEnd();

  EXPECT_EQ(ended.code, 7);
  EXPECT_EQ(ended.signal, 0);
  EXPECT_EQ(ended.gram_code, 0);
  EXPECT_GT(ended.time_ms, 0);
  EXPECT_GT(ended.max_rss_kb, 0);
}

TEST_P(SupervisorStartTest, ReportsTheSignalThatEndedIt) {
  Shell("kill -SEGV $$");

  EXPECT_EQ(RunToEnd().signal, SIGSEGV);
}

TEST_P(SupervisorStartTest, RunsAsTheAccountWithItsEnvironmentOnly) {
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

TEST_P(SupervisorStartTest, InheritsNothingButTheStandardStreams) {
  Shell("ls /proc/self/fd | tr '\\n' ' '; grep -E 'Sig(Blk|Ign)' /proc/self/status");  // 32 and 33
                                                                                       // are the C
                                                                                       // library's

  EXPECT_EQ(RunToEnd().code, 0);
  EXPECT_THAT(
      Spooled(kStdoutFile),
      ::testing::ContainsRegex("^0 1 2 3 SigBlk:\t0000000000000000\nSigIgn:\t0000000[01]80000000|"
                               "0 1 2 3 SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000"));
}

TEST_P(SupervisorStartTest, StandardStreamsCanBeOpenedByName) {
  Shell("echo a >> /dev/stdout; echo b >> /dev/stderr");

  EXPECT_EQ(RunToEnd().code, 0);
  EXPECT_EQ(Spooled(kStdoutFile), "a\n");
  EXPECT_EQ(Spooled(kStderrFile), "b\n");
}

TEST_P(SupervisorStartTest, ASpoolFileThatItLinksToStaysItsAccounts) {
  Shell("ln " + dir_ + "/stdout kept; echo text");

  EXPECT_EQ(RunToEnd().code, 0);
  struct stat info {};
  ASSERT_EQ(stat((home_ + "/kept").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, spec_.uid);
  EXPECT_EQ(Spooled(kStdoutFile), "text\n");
}

TEST_P(SupervisorStartTest, ThatHasNoRoomToSaySoBeginsNothingAndLeavesNothing) {
  Shell("exit 5");
  Prepare();
  {
    const test::FullDisk disk;
    Spawn();
    while (waitpid(-1, nullptr, 0) > 0) {
    }
  }
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
    files.push_back(entry.path().filename());
  }
  EXPECT_THAT(files, ::testing::ElementsAre(kSpecFile));

  Spawn();

  EXPECT_EQ(AwaitEnd().code, 5);
}

TEST_P(SupervisorStartTest, PathsOfStreamsAreTheAccountsAndRelativeToTheDirectory) {
  std::ofstream(home_ + "/in") << "input";
  std::ofstream(home_ + "/out") << "old and long";
  ASSERT_EQ(chown((home_ + "/out").c_str(), spec_.uid, spec_.gid), 0);
  spec_.stdin_path = "in";
  spec_.stdout_path = spec_.stderr_path = "out";
  Shell("cat; echo e >&2");

  EXPECT_EQ(RunToEnd().code, 0);
  EXPECT_EQ(TextOf(home_ + "/out"), "inpute\n");
}

TEST_P(SupervisorStartTest, AppendsWhenToldTo) {
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

TEST_P(SupervisorStartTest, SaysWhyATaskCannotStart) {
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

TEST_P(SupervisorStartTest, RefusesRootAndOtherAccountsThanItMayBecome) {
  spec_.uid = getuid() == 0 ? 0 : 1;
  spec_.account = "other";

  const Ended ended = RunToEnd();

  EXPECT_EQ(ended.gram_code, kInvalidUserName);
  EXPECT_THAT(ended.reason, HasSubstr("account other"));
}

TEST_P(SupervisorStartTest, CheckLeavesNoTrace) {
  spec_.check_only = true;
  spec_.stdout_path = "new";
  Shell("touch ran");
  EXPECT_EQ(RunToEnd().gram_code, 0);

  EXPECT_TRUE(std::filesystem::is_empty(home_));
}

TEST_P(SupervisorStartTest, CheckFindsWhatAStartWouldFind) {
  spec_.check_only = true;
  spec_.stdout_path = "/no/out";

  EXPECT_EQ(RunToEnd().gram_code, 73);
}

INSTANTIATE_TEST_SUITE_P(Grouping, SupervisorStartTest,
                         ::testing::Values(Grouping::kNone, Grouping::kV1, Grouping::kV2),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace sekisho::agent::task
