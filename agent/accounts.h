// SPDX-License-Identifier: Apache-2.0
// The inside's accounts, looked up once and remembered for a while.
#pragma once

#include <sys/types.h>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "common/status.h"

namespace sekisho::agent {

struct Account {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
  std::string home;
  std::string shell;
};

class Accounts {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes kRemembered{5};

  // NotFound if this node does not know the account.
  absl::StatusOr<Account> Find(const std::string& name, Clock::time_point now);

 private:
  struct Entry {
    Account account;
    Clock::time_point until;
  };
  std::map<std::string, Entry> known_;
};

}  // namespace sekisho::agent
