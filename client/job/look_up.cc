// SPDX-License-Identifier: Apache-2.0
#include "client/job/look_up.h"

namespace sekisho::client {

awaitable<absl::StatusOr<proto::JobStatus>> LookUp(Session& session, std::string job_id) {
  proto::StatusRequest request;
  request.add_job_id(job_id);
  request.set_without_rsl(true);
  CO_ASSIGN_OR_RETURN(proto::StatusReply reply,
                      (co_await session.Call<proto::StatusRequest, proto::StatusReply>(&Session::Async::Status, request)));
  proto::JobStatus job;
  job.set_state(proto::UNKNOWN);
  if (reply.job_size() == 1) {
    job.Swap(reply.mutable_job(0));
  }
  co_return job;
}

}  // namespace sekisho::client
