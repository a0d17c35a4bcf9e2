// SPDX-License-Identifier: Apache-2.0
// Users' commands, each once and in the order in which they were signed: what a broken machine on
// the way recorded and sends again, or holds back, changes nothing.  Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/identity/freshness.h"
#include "common/status.h"

namespace sekisho::qserver {

class Commands {
 public:
  static constexpr size_t kPerSubject = 1000;  // requests within the window

  // `window` as of CheckFreshness; `started`: this daemon, which knows of none before.
  Commands(std::chrono::seconds window, identity::Time started)
      : window_(window), started_(started), newest_(started) {}

  // Of one signature; it may be about many jobs.
  struct Request {
    std::string subject;
    std::string id;
    int64_t time_ms = 0;   // as signed
    bool is_repeat = false;  // of one that was taken
  };
  // Takes it; a repeat is good, and marked as such.
  absl::Status Take(Request& request, identity::Time now);

  // Is it to be carried out on `what` (a job, a node)?  Then nothing older is any more.  False: it was, or, of a
  // repeat, something later was.
  absl::StatusOr<bool> Begin(const Request& request, const std::string& what);
  // It was not carried out after all: it may come again.
  void Withdraw(const Request& request, const std::string& what);

  // Both, of what is about one thing.
  absl::StatusOr<bool> Accept(Request request, const std::string& what, identity::Time now);

 private:
  struct Last {
    int64_t time_ms = 0;
    std::string subject;
    std::string request_id;  // "": it was withdrawn
  };
  const std::chrono::seconds window_;
  identity::Time started_;
  identity::Time newest_;  // that the clock has shown
  std::map<std::string, identity::ReplaySet> seen_;  // by subject
  std::map<std::string, Last> last_;                 // by what it was about
  identity::Time tidied_;
};

}  // namespace sekisho::qserver
