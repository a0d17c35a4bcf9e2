// SPDX-License-Identifier: Apache-2.0
// sekisho ls, get, put: a job's directory, while it runs and after.
#include <sys/stat.h>

#include <ctime>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/job/file_names.h"
#include "client/job/job_files.h"
#include "client/job/job_text.h"
#include "client/job/staged_files.h"
#include "client/job/upload.h"
#include "client/site/harmless.h"
#include "client/site/site_call.h"
#include "client/site/until_judged.h"
#include "client/verbs/verb_files.h"
#include "client/verbs/verbs.h"
#include "common/refusal.h"

namespace sekisho::client {
namespace {

struct FilesOptions {
  std::string job, output, to;
  std::vector<std::string> paths;
  bool is_json = false, is_quiet = false;
  int within = 300;
};

const char* KindOf(const proto::FileEntry& entry) {
  switch (entry.kind()) {
    case proto::FileEntry::DIRECTORY: return "directory";
    case proto::FileEntry::LINK: return "link";
    case proto::FileEntry::FILE: return "file";
    default: return "other";
  }
}

void Print(const std::vector<proto::FileEntry>& entries, bool is_json) {
  std::vector<std::vector<std::string>> rows;
  for (const proto::FileEntry& entry : entries) {
    if (is_json) {
      fmt::print("{}\n", nlohmann::json({{"path", entry.path()},
                                         {"kind", KindOf(entry)},
                                         {"size", entry.size()},
                                         {"mode", entry.mode()},
                                         {"modified_ms", entry.modified_ms()},
                                         {"target", entry.target()}})
                             .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
      continue;
    }
    const char letter = entry.kind() == proto::FileEntry::DIRECTORY ? 'd' : entry.kind() == proto::FileEntry::LINK ? 'l' : '-';
    rows.push_back({fmt::format("{}{:04o}", letter, entry.mode()), std::to_string(entry.size()),
                    fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time_t(entry.modified_ms() / 1000))),
                    entry.target().empty() ? entry.path() : entry.path() + " -> " + entry.target()});
  }
  if (!is_json) {
    fmt::print("{}", Columns(rows));
  }
}

awaitable<int> List(Session& session, std::string job_id, const FilesOptions& options) {
  const std::vector<std::string> paths = options.paths.empty() ? std::vector<std::string>{""} : options.paths;
  for (const std::string& path : paths) {
    const auto entries = co_await ListFiles(session, job_id, path);
    if (!entries.ok()) {
      co_return Report(entries.status());
    }
    Print(*entries, options.is_json);
  }
  co_return 0;
}

bool IsDirectory(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// What it has staged out for this machine.
awaitable<int> GetStagedOut(Session& session, std::string job_id, const FilesOptions& options) {
  proto::StatusRequest request;
  request.add_job_id(job_id);
  const auto reply = co_await Query<proto::StatusRequest, proto::StatusReply>(session, &Session::Async::Status, request);
  if (!reply.ok()) {
    co_return Report(reply.status());
  }
  if (reply->job_size() != 1 || reply->job(0).staged_out_size() == 0) {
    co_return Report(Refuse(absl::StatusCode::kFailedPrecondition, 0, "the job has staged nothing out",
                            "name what to get: sekisho ls JOB"));
  }
  const std::string place = options.output.empty() ? "." : options.output;
  const DownloadOptions download{.patience = std::chrono::seconds(options.within), .is_quiet = options.is_quiet};
  const absl::Status got = co_await FetchStagedOutInto(session, reply->job(0), place, download);
  co_return got.ok() ? 0 : ReportFetch(got);
}

awaitable<int> Get(Session& session, std::string job_id, const FilesOptions& options) {
  if (options.paths.empty()) {
    co_return co_await GetStagedOut(session, job_id, options);
  }
  const std::string place = options.output.empty() ? "." : options.output;
  const auto places = PlacesHere(options.paths, place, IsDirectory(place));
  if (!places.ok()) {
    co_return Report(places.status());
  }
  const DownloadOptions download{.patience = std::chrono::seconds(options.within), .is_quiet = options.is_quiet};
  for (size_t i = 0; i < places->size(); ++i) {
    FileAccess access;
    access.set_job_id(job_id);
    access.mutable_read()->set_path(options.paths[i]);
    const absl::Status got = co_await Download(session, std::move(access), (*places)[i], download);
    if (!got.ok()) {
      co_return ReportFetch(got);
    }
  }
  co_return 0;
}

awaitable<int> Put(Session& session, std::string job_id, const FilesOptions& options) {
  const auto places = PlacesThere(options.paths, options.to);
  if (!places.ok()) {
    co_return Report(places.status());
  }
  for (size_t i = 0; i < places->size(); ++i) {
    auto file = SumFile(options.paths[i]);
    if (!file.ok()) {
      co_return Report(file.status());
    }
    const UploadOptions upload{.patience = std::chrono::seconds(options.within),
                               .reopens = true,
                               .bar = std::make_shared<TransferBar>(!options.is_quiet)};
    const absl::Status put = co_await PutFile(session, job_id, *std::move(file), (*places)[i], upload);
    if (!put.ok()) {
      co_return Report(put);
    }
  }
  co_return 0;
}

using Do = awaitable<int> (*)(Session&, std::string, const FilesOptions&);

CLI::App* AddVerb(CLI::App& app, Invocation& invocation, const char* name, const char* help,
                  const std::shared_ptr<FilesOptions>& options, Do what) {
  auto* verb = app.add_subcommand(name, help);
  verb->add_option("JOB", options->job, "SITE/ID")->required();
  verb->callback([options, &invocation, what] {
    invocation.exit_code = WithJob(options->job, [&](Session& session, const std::string& id) {
      return what(session, id, *options);
    });
  });
  return verb;
}

}  // namespace

void AddListFilesVerb(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<FilesOptions>();
  auto* verb = AddVerb(app, invocation, "ls", "List a job's directory", options, List);
  verb->add_option("PATH", options->paths, "Relative to the job's directory, which it is if none is given");
  verb->add_flag("--json", options->is_json, "A line of JSON each");
}

void AddGetVerb(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<FilesOptions>();
  auto* verb = AddVerb(app, invocation, "get", "Fetch files of a job's directory", options, Get);
  verb->add_option("PATH", options->paths, "Relative to the job's directory; none: what it has staged out");
  verb->add_option("-o,--output", options->output, "File or directory here, or -: standard output");
  verb->add_option("--within", options->within, "Seconds in which a byte has to get through")->check(CLI::Range(1, 86400));
  verb->add_flag("-q,--quiet", options->is_quiet, "No progress bar");
}

void AddPutVerb(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<FilesOptions>();
  auto* verb = AddVerb(app, invocation, "put", "Send files into a job's directory", options, Put);
  verb->add_option("LOCAL", options->paths, "Files of this machine")->required();
  verb->add_option("--to", options->to, "Path in the job's directory; a directory if it ends in /");
  verb->add_option("--within", options->within, "Seconds in which a byte has to get through")->check(CLI::Range(1, 86400));
  verb->add_flag("-q,--quiet", options->is_quiet, "No progress bar");
}

}  // namespace sekisho::client
