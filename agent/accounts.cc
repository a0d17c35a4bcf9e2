// SPDX-License-Identifier: Apache-2.0
#include "agent/accounts.h"

#include <grp.h>
#include <pwd.h>
#include <cerrno>
#include <cstring>

#include "agent/errors.h"

namespace sekisho::agent {
namespace {

absl::StatusOr<Account> LookUp(const std::string& name) {
  std::vector<char> buffer(16 << 10);
  passwd entry{};
  passwd* found = nullptr;
  int error = 0;
  while ((error = getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found)) ==
             ERANGE &&
         buffer.size() < (1 << 20)) {
    buffer.resize(buffer.size() * 2);
  }
  if (found == nullptr && error != 0 && error != ENOENT && error != ESRCH) {
    return errors::CannotLookUp(name, std::strerror(error));
  }
  if (found == nullptr) {
    return errors::NoSuchAccount(name);
  }
  Account account{entry.pw_name, entry.pw_uid, entry.pw_gid, {}, entry.pw_dir, entry.pw_shell};
  int count = 64;
  account.groups.resize(static_cast<size_t>(count));
  if (getgrouplist(entry.pw_name, entry.pw_gid, account.groups.data(), &count) < 0) {
    account.groups.resize(static_cast<size_t>(count));
    getgrouplist(entry.pw_name, entry.pw_gid, account.groups.data(), &count);
  }
  account.groups.resize(static_cast<size_t>(count));
  return account;
}

}  // namespace

absl::StatusOr<Account> Accounts::Find(const std::string& name, Clock::time_point now) {
  auto known = known_.find(name);
  if (known == known_.end() || known->second.until <= now) {
    ASSIGN_OR_RETURN(Account account, LookUp(name));
    known = known_.insert_or_assign(name, Entry{std::move(account), now + kRemembered}).first;
  }
  return known->second.account;
}

}  // namespace sekisho::agent
