// SPDX-License-Identifier: Apache-2.0
#include "client/world/build.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/sha.h>

#include "client/job/follow.h"
#include "client/job/job_text.h"
#include "client/job/upload.h"
#include "client/site/exit_code.h"
#include "client/site/harmless.h"
#include "client/site/site_call.h"
#include "common/refusal.h"
#include "rsl/printer.h"

namespace sekisho::client {
namespace {

constexpr char kBuilds[] = ".sekisho/builds";
constexpr size_t kKeyDigits = 32;

// Made aside and renamed, so that what is at its place is whole; whoever is first stays.
constexpr char kScript[] = R"(set -e
place=$1 command=$2 archive=$HOME/$3
exec >&2
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM  # without it a signal ends dash, and no EXIT trap is run
cd "$HOME/.sekisho/builds"
test ! -d "$place" || exit 0
work=$(mktemp -d "$PWD/$place.XXXXXX")
chmod 755 "$work"
tar -xf "$archive" -C "$work"
(cd "$work" && exec /bin/sh -c "$command")
mv -T "$work" "$place" 2>/dev/null || test -d "$place")";

std::string Hexadecimal(const std::string& bytes) {
  return fmt::format("{:02x}", fmt::join(std::vector<unsigned char>(bytes.begin(), bytes.end()), ""));
}

std::string Sum(const std::string& text) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), reinterpret_cast<unsigned char*>(digest.data()));
  return Hexadecimal(digest);
}

// Its exit code; what it writes goes to `output`.
int Run(const std::vector<std::string>& words, int output) {
  std::vector<char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  pid_t child = 0;  // not fork(): gRPC's threads are there already
  int status = 0;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  const bool is_done = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ) == 0 &&
                       waitpid(child, &status, 0) == child && WIFEXITED(status);
  posix_spawn_file_actions_destroy(&actions);
  return is_done ? WEXITSTATUS(status) : -1;
}

// The home, and nobody has said so: keys and all would go.
bool IsHomeByChance(const std::string& folder) {
  const char* const home = std::getenv("HOME");
  std::error_code error;
  return folder == "." && home != nullptr && std::filesystem::equivalent(folder, home, error);
}

}  // namespace

absl::StatusOr<Sources> Sources::Pack(const std::string& folder, const std::string& program) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    return absl::InvalidArgumentError(fmt::format("--sources {}: expected a folder", folder));
  }
  if (IsHomeByChance(folder)) {
    return Refuse(absl::StatusCode::kInvalidArgument, 0, "--build: this is your home: all of it would be sent",
                  "run it in the sources' folder, or name that: --sources FOLDER");
  }
  std::string archive = (std::filesystem::temp_directory_path(error) / "sekisho-sources-XXXXXX").string();
  Sources sources;
  sources.fd_ = mkostemp(archive.data(), O_CLOEXEC);
  if (sources.fd_ < 0) {
    return absl::InvalidArgumentError(fmt::format("cannot write {}: is TMPDIR right?", archive));
  }
  unlink(archive.c_str());  // however we end, nothing is left
  // The same content is the same archive, whoever has it and whenever it was touched: so no file has a time, and what
  // was built here would count as made of these sources.
  const std::string own = "./" + std::filesystem::path(program).lexically_normal().string();
  const int code = Run({"tar", "--create", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner",
                        "--exclude-vcs", "--exclude-vcs-ignores", "--exclude=*.o", "--exclude=*.a", "--exclude=*.so",
                        "--anchored", "--no-wildcards", "--exclude=" + own, "--file=-", "--directory=" + folder, "."},
                       sources.fd_);
  if (code != 0) {
    return absl::InvalidArgumentError(
        fmt::format("--sources {}: tar could not pack it, and ended with code {}", folder, code));
  }
  ASSIGN_OR_RETURN(const auto file, SumFile(sources.archive()));
  sources.sum_ = Hexadecimal(file.sha256());
  return sources;
}

std::string Sources::archive() const { return fmt::format("/proc/self/fd/{}", fd_); }

Sources::~Sources() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

std::string PlaceOf(const Build& build) {
  return fmt::format("{}/{}-{}", kBuilds, Sum(build.sum + '\n' + build.command).substr(0, kKeyDigits),
                     build.architecture);
}

std::string BuildRsl(const Build& build, const std::string& nonce) {
  const std::string archive = fmt::format("{}/{}.tar", kBuilds, nonce);
  std::string rsl = "&(executable=/bin/sh)(arguments=-c";
  for (const std::string& word : {std::string(kScript), std::string("build"),
                                  PlaceOf(build).substr(sizeof kBuilds), build.command, archive}) {
    rsl += ' ';
    rsl += rsl::PrintLiteral(word);
  }
  const std::string place = rsl::PrintLiteral(archive);
  return rsl + fmt::format(")(file_stage_in=({} {}))(file_clean_up={})", rsl::PrintLiteral(build.archive), place, place);
}

absl::StatusOr<std::string> ArchitectureOf(const proto::SiteInfo& site) {
  std::set<std::string> all;
  for (const proto::NodeInfo& node : site.node()) {
    if (node.is_up()) {
      all.insert(node.architecture());
    }
  }
  if (all.size() == 1) {
    return *all.begin();
  }
  const std::string what = all.empty() ? "no node is up" : fmt::format("its nodes are {}", fmt::join(all, " and "));
  return Refuse(absl::StatusCode::kFailedPrecondition, 0, fmt::format("cannot build at {}: {}", site.site(), what),
                all.empty() ? "try again later" : "build it there yourself, and name it: --per-site-exe SITE=PATH");
}

awaitable<int> BuildAtSite(Session& session, Build build) {
  const std::string nonce = NewRequestId();
  proto::RequestBody body;
  body.set_request_id(nonce);
  body.mutable_submit()->set_rsl(BuildRsl(build, nonce));
  const auto files = SumStagedFiles(body.submit().rsl());
  if (!files.ok()) {
    co_return Report(files.status());
  }
  *body.mutable_submit()->mutable_file() = *files;
  const auto request = session.Sign(std::move(body));
  if (!request.ok()) {
    co_return Report(request.status());
  }
  FollowOptions follow;
  follow.submission = *request;
  follow.request_id = nonce;
  follow.wanted.set_events(true);
  follow.wanted.set_output(true);
  follow.wanted.set_follow(true);
  follow.on_submitted = [&](const proto::SubmitReply& reply) {
    co_spawn(session.loop(), UploadOrCancel(session, reply.job_id(), *files, {}), Vital("sending files"));
  };
  const auto followed = co_await Follow(session, follow);
  if (!followed.ok()) {
    co_return Report(followed.status());
  }
  if (followed->was_left || followed->was_interrupted) {
    co_return kExitCancelled;
  }
  fmt::print(stderr, "{}", EndText(followed->job));
  co_return ExitCodeOf(followed->job);
}

}  // namespace sekisho::client
