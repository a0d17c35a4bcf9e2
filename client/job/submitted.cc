// SPDX-License-Identifier: Apache-2.0
#include "client/job/submitted.h"

#include "client/job/commit.h"
#include "client/job/upload.h"
#include "client/site/site_call.h"

namespace sekisho::client {

absl::StatusOr<ClientFiles> PrepareJob(const Session& session, const std::string& rsl, Delegation delegation) {
  ASSIGN_OR_RETURN(ClientFiles files, SumStagedFiles(rsl));
  RETURN_IF_ERROR(CheckDelegation(session, delegation));
  return files;
}

awaitable<int> GiveWhatItAwaits(Session& session, proto::SubmitReply reply, std::string request_id, Awaited awaited) {
  if (reply.dry_run()) {
    co_return 0;
  }
  if (awaited.commits && reply.commit_within_s() > 0) {
    const absl::Status committed =
        co_await Commit(session, reply.job_id(), std::chrono::seconds(reply.commit_within_s()));
    if (!committed.ok()) {
      co_return Report(committed);
    }
  }
  if (awaited.delegation != Delegation::kNone) {
    const int code = co_await DelegateOrCancel(session, reply, request_id, awaited.delegation);
    if (code != 0) {
      co_return code;
    }
  }
  if (!awaited.files.empty()) {
    const UploadOptions options{.reopens = true, .bar = std::make_shared<TransferBar>(!awaited.is_quiet)};
    const absl::Status sent = co_await Upload(session, reply.job_id(), awaited.files, options);
    co_return sent.ok() ? 0 : Report(sent);
  }
  co_return 0;
}

}  // namespace sekisho::client
