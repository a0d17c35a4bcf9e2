// SPDX-License-Identifier: Apache-2.0
// sekisho rankmap solve --jobs: this very program runs at a site, as many times as one wants, on the same problem.
// It is submitted by `sekisho run`, whose staging, output and Ctrl-C serve here too.
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <ostream>
#include <random>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/rankmap/rankmap_files.h"
#include "client/rankmap/rankmap_run.h"
#include "rankmap/network_format.h"
#include "rankmap/pattern_format.h"

namespace sekisho::client {
namespace {

constexpr int kMostJobs = 4096;

absl::Status CheckOptions(const RankmapSolveOptions& options) {
  if (options.resource.empty() || options.jobs > kMostJobs) {
    return absl::InvalidArgumentError(
        fmt::format("--jobs: expected 1 to {} tasks and -r with the site that runs them", kMostJobs));
  }
  if (!options.checkpoint.empty() || !options.resume.empty() || !options.exchange.empty() || !options.qap.empty()) {
    return absl::InvalidArgumentError("--jobs goes with neither --checkpoint, --resume, --exchange nor --qap");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> OwnProgram() {
  std::array<char, PATH_MAX> path{};
  if (readlink("/proc/self/exe", path.data(), path.size() - 1) < 0) {
    return absl::InternalError(fmt::format("/proc/self/exe: {}", std::strerror(errno)));
  }
  return std::string(path.data());
}

// A folder of ours until the job has ended.
class Scratch {
 public:
  Scratch() {
    std::error_code error;  // without a place mkdtemp says what is wrong
    path_ = (std::filesystem::temp_directory_path(error) / "sekisho-rankmap.XXXXXX").string();
    is_there_ = mkdtemp(path_.data()) != nullptr;
  }
  ~Scratch() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  bool is_there() const { return is_there_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool is_there_ = false;
};

struct Ended {
  std::string output;
  bool is_well = false;  // else the command has said by itself what was wrong
};

absl::StatusOr<Ended> RunToEnd(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::InternalError(fmt::format("pipe: {}", std::strerror(errno)));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = -1;
  const int failed = posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed != 0) {
    close(ends[0]);
    return absl::InternalError(fmt::format("{}: {}", words[0], std::strerror(failed)));
  }
  Ended ended;
  std::array<char, 65536> buffer;
  for (ssize_t count = 0; (count = read(ends[0], buffer.data(), buffer.size())) > 0 || (count < 0 && errno == EINTR);) {
    ended.output.append(buffer.data(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ended.is_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return ended;
}

// A job that is cancelled ends its tasks by SIGTERM: the first of them prints the best so far, and what of that has come
// back is a result too.
absl::StatusOr<rankmap::Placement> BestOf(const Ended& ended, const rankmap::Pattern& pattern,
                                          const rankmap::Network& network) {
  const auto nodes = rankmap::ParsePlacement(ended.output, "the job's output");
  auto best = nodes.ok() ? rankmap::FromNodes(network, pattern.ranks(), *nodes)
                         : absl::StatusOr<rankmap::Placement>(nodes.status());
  if (best.ok() || ended.is_well) {
    return best;
  }
  return absl::UnavailableError(WasInterrupted()
                                    ? "--jobs: stopped before a placement has come back: nothing is written"
                                    : "--jobs: the job has not ended well, nothing is written");
}

std::vector<std::string> RunWords(const RankmapSolveOptions& options, const std::string& program,
                                  const std::vector<std::string>& staged) {
  std::vector<std::string> words = {program,      "run", "-r",         options.resource,
                                    "--job-type", "multiple", "--count",    std::to_string(options.jobs),
                                    "--stage-exe"};
  for (const std::string& pair : staged) {
    words.insert(words.end(), {"--stage-in", pair});
  }
  words.insert(words.end(), {"--", program, "rankmap", "solve", "--quiet", "-o", "-"});
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) {
      words.insert(words.end(), {option, value});
    }
  };
  add("--objective", options.objective);
  add("--weight", options.weight);
  add("--method", options.method);
  add("--time", options.time);
  add("--seed", std::to_string(options.seed));
  add("--threads", std::to_string(options.threads));
  add("--max-itrs", std::to_string(options.max_itrs));
  add("--range", std::to_string(options.range));
  add("--num-swaps", std::to_string(options.num_swaps));
  if (options.iterations > 0) {
    add("--iterations", std::to_string(options.iterations));
  }
  if (options.target) {
    add("--target", fmt::format("{}", *options.target));
  }
  return words;
}

std::string NewFolder() {
  std::random_device random;
  return fmt::format(".sekisho/rankmap/{:08x}{:08x}", random(), random());
}

}  // namespace

absl::Status SolveByJob(const RankmapSolveOptions& options, std::ostream& out, std::ostream& err) {
  const double started = MonotonicSeconds();
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(const rankmap::SolveOptions solve, Translate(options));
  RETURN_IF_ERROR(TimeLimit(options, started).status());
  ASSIGN_OR_RETURN(const rankmap::Network network, ReadNetwork(options.network));
  ASSIGN_OR_RETURN(const rankmap::Pattern pattern, ReadPattern(options.pattern));
  RETURN_IF_ERROR(CheckFit({options.pattern, options.network}, pattern, network, solve.objective));
  rankmap::Placement start(network.slots());
  if (!options.start.empty()) {
    ASSIGN_OR_RETURN(start, ReadPlacement(options.start, pattern, network));
  }

  const SignalGuard signals;  // the command that we run hears Ctrl-C as well; our folder goes when it has ended
  const Scratch scratch;
  if (!scratch.is_there()) {
    return absl::InternalError(fmt::format("{}: {}", scratch.path(), std::strerror(errno)));
  }
  // The pattern as our text, whatever it was; in the job's home the folder is also where its tasks meet.
  const std::string folder = NewFolder();
  const std::string local = scratch.path() + "/pattern";
  RETURN_IF_ERROR(WriteFile(local, rankmap::PrintPattern(pattern)));
  std::vector<std::string> staged = {local + "=" + folder + "/pattern"};
  std::string network_there = options.network;
  const auto stage = [&](const std::string& file, const char* name) {
    staged.push_back(std::filesystem::absolute(file).string() + "=" + folder + "/" + name);
    return folder + "/" + name;
  };
  if (!rankmap::IsNetworkSpec(options.network)) {
    ASSIGN_OR_RETURN(const std::string text, ReadNetworkText(options.network));
    RETURN_IF_ERROR(WriteFile(scratch.path() + "/network", text));
    network_there = stage(scratch.path() + "/network", "network");
  }
  std::string start_there = options.start.empty() ? "" : stage(options.start, "start");
  ASSIGN_OR_RETURN(const std::string program, OwnProgram());
  std::vector<std::string> words = RunWords(options, program, staged);
  words.insert(words.end(),
               {"--exchange", folder, "--pattern", folder + "/pattern", "--network", network_there});
  if (!start_there.empty()) {
    words.insert(words.end(), {"--start", start_there});
  }

  ASSIGN_OR_RETURN(const Ended ended, RunToEnd(std::move(words)));
  ASSIGN_OR_RETURN(const rankmap::Placement best, BestOf(ended, pattern, network));
  const std::string text = rankmap::PrintPlacement(rankmap::ToNodes(network, pattern.ranks(), best));
  if (options.output == "-") {
    out << text;
  } else {
    RETURN_IF_ERROR(WriteFile(options.output, text));
  }
  if (!ended.is_well) {
    err << "--jobs: the job was ended before its time, the best that it had found is written\n";
  }
  const rankmap::Problem problem(pattern, network, solve);
  RETURN_IF_ERROR(WritePicture(options, problem, start, best));
  if (options.output != "-") {
    Report(options, problem, best, MonotonicSeconds() - started, out);
  }
  return absl::OkStatus();
}

}  // namespace sekisho::client
