// SPDX-License-Identifier: Apache-2.0
// sekisho upload: sends a job the files that it still waits for, after the command that submitted it was lost.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "client/job/upload.h"
#include "client/site/site_call.h"
#include "client/verbs/verb_files.h"
#include "client/verbs/verbs.h"

namespace sekisho::client {
namespace {

struct UploadVerbOptions {
  std::string job;
  int within = 300;
  bool is_quiet = false;
};

// As its user has signed them.
awaitable<absl::StatusOr<ClientFiles>> FilesOf(Session& session, std::string job_id) {
  proto::AttachRequest request;
  request.set_job_id(job_id);
  request.set_events(true);
  const auto updates = rpc::Start<rpc::ClientReader<proto::Update>>(
      session.loop(), session.Options(),
      [&](auto& call) { session.stub().async()->Attach(&call.context(), &request, &call); });
  ClientFiles files;
  proto::Update update;
  for (;;) {
    const bool is_read = co_await updates->Read(update);
    if (!is_read) {
      break;
    }
    proto::RequestBody body;
    if (update.event().has_submitted() && body.ParseFromString(update.event().submitted().request().body())) {
      files = body.submit().file();
    }
  }
  CO_RETURN_IF_ERROR(co_await updates->Finish());
  co_return files;
}

awaitable<int> UploadFiles(Session& session, std::string job_id, const UploadVerbOptions& options) {
  auto files = co_await FilesOf(session, job_id);
  if (!files.ok()) {
    co_return Report(files.status());
  }
  const UploadOptions upload{.patience = std::chrono::seconds(options.within),
                             .reopens = true,
                             .bar = std::make_shared<TransferBar>(!options.is_quiet)};
  const absl::Status sent = co_await Upload(session, job_id, *std::move(files), upload);
  co_return sent.ok() ? 0 : Report(sent);
}

}  // namespace

void AddUploadVerb(CLI::App& app, Invocation& invocation) {
  auto* verb = app.add_subcommand("upload", "Send a job the files that it still waits for");
  auto options = std::make_shared<UploadVerbOptions>();
  verb->add_option("JOB", options->job, "SITE/ID")->required();
  verb->add_option("--within", options->within, "Seconds in which a byte has to get through")->check(CLI::Range(1, 86400));
  verb->add_flag("-q,--quiet", options->is_quiet, "No progress bar");
  verb->callback([options, &invocation] {
    invocation.exit_code = WithJob(options->job, [&](Session& session, const std::string& id) {
      return UploadFiles(session, id, *options);
    });
  });
}

}  // namespace sekisho::client
