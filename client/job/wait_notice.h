// SPDX-License-Identifier: Apache-2.0
// Says once, on stderr, why a job waits, if it does so for more than a moment.
#pragma once

#include <memory>
#include <string>

#include "common/loop.h"
#include "proto/job.pb.h"

namespace sekisho::client {

// The sentence.  `is_inside`: the site's queue server has the job.
std::string WaitText(const std::string& site, const std::string& job_id, bool is_inside,
                     const std::string& reason, bool is_cancelled_by_interrupt);

class WaitNotice {
 public:
  WaitNotice(Loop& loop, bool is_cancelled_by_interrupt);

  void OnSubmitted(const proto::SubmitReply& reply);
  void OnEvent(const proto::JobEvent& event);

 private:
  struct State {
    std::string site, job_id, reason;
    bool is_inside = false;
    bool is_over = false;  // said, or nothing to say any more
  };

  void SaySoon();

  Loop& loop_;
  const bool is_cancelled_by_interrupt_;
  std::shared_ptr<State> state_ = std::make_shared<State>();  // the timer's, too
};

}  // namespace sekisho::client
