// SPDX-License-Identifier: Apache-2.0
// From order to answer: what a stager does for the queue server.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qserver/stager.pb.h"
#include "qserver/stager/cache.h"
#include "qserver/stager/tree.h"

namespace sekisho::qserver::stager {

class Desk {
 public:
  Desk() = default;
  ~Desk();  // what it has placed leaves the cache as small as it is to be
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  // None: the order has no answer.
  std::optional<StagerReply> Do(const StagerOrder& order);

 private:
  absl::StatusOr<StagerReply> Answer(const StagerOrder& order);
  absl::Status Add(std::string_view data);
  static absl::StatusOr<Content> SendFile(const Below& from, const std::string& url, uint64_t offset);

  std::vector<std::string> roots_;
  std::string job_id_;
  uint64_t cache_bytes_ = 0;
  std::unique_ptr<Cache> cache_;
  bool has_placed_ = false;
  std::optional<Cache::Incoming> incoming_;
  std::optional<Reading> reading_;
  absl::Status trouble_;  // of data, told at the next order that is answered
};

}  // namespace sekisho::qserver::stager
