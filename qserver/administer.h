// SPDX-License-Identifier: Apache-2.0
// An administrator's word about a site: whether it can be done, what it is about, and how it is written down.  Pure,
// but for the audit file.  docs/protocol/5-queue.md, "Administration".
#pragma once

#include <deque>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "proto/job.pb.h"
#include "qserver/admission.h"

namespace sekisho::qserver {

// Says something, and nothing too long, about nodes that are there and subjects that may be banned.
absl::Status CheckWord(const proto::RequestBody::Administer& word, const AdmissionRules& rules,
                       const std::function<bool(const std::string& node)>& is_node);

// What it is about: words about the same are obeyed in the order in which they were signed.
std::string ObjectOf(const proto::RequestBody::Administer& word);

// A line of JSON.
std::string AuditLine(const proto::RequestBody::Administer& word, const std::string& by, const std::string& request_id,
                      const std::vector<std::string>& jobs, int64_t now_ms);

// The file may be moved away at any time: a new one is made.
class AuditFile {
 public:
  explicit AuditFile(std::string path) : path_(std::move(path)) {}
  // On disk when it returns OK, with those that could not be written before; else it waits with them for the next call,
  // which may be of "": of nothing but what waits.
  absl::Status Write(const std::string& line);

 private:
  absl::Status Append(const std::string& line);

  const std::string path_;
  std::deque<std::string> waiting_;
};

}  // namespace sekisho::qserver
