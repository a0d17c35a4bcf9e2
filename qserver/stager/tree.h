// SPDX-License-Identifier: Apache-2.0
// What an account's directories hold, and what goes from them: docs/protocol/17-staging.md.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "qserver/stager.pb.h"
#include "qserver/stager/beneath.h"
#include "qserver/stager/content.h"

namespace sekisho::qserver::stager {

// A directory's entries by name, or the one file; `path` of each is its name.
absl::StatusOr<StagerReply::Listed> List(const Below& where);

// A file that is read, piece by piece.
class Reading {
 public:
  // FailedPrecondition: it is no regular file.
  static absl::StatusOr<Reading> Begin(const Below& where, uint64_t offset);

  const StagerReply::Entry& entry() const { return entry_; }
  absl::StatusOr<std::string> Next();  // empty at the end
  std::string Finish() { return sum_->Finish(); }  // the sum of all of it, from the first byte on

 private:
  absl::StatusOr<std::string> Read(size_t most);

  StagerReply::Entry entry_;
  std::string name_;
  Fd fd_;
  std::unique_ptr<Sum> sum_;
};

// A copy of the file, written aside and renamed; what it is.
absl::StatusOr<Content> Copy(const Below& from, const Below& to, const std::string& aside);

// A file of ours, 0600, with this in it: written aside and renamed.  A link in its place is replaced.
absl::Status Keep(const Below& where, std::string_view content, const std::string& aside);

// From the offset on it has these bytes, and ends behind them; offset 0: a new file of ours, in place of what was there.
absl::Status WriteFrom(const Below& where, uint64_t offset, std::string_view data, unsigned mode);

// Done also if it was not there.
absl::Status Remove(const Below& where);      // a file or a link
absl::Status RemoveTree(const Below& where);  // a directory with all that is in it; links are not followed

// With what is missing above it; one that is there already must be ours.
absl::Status MakeDirectory(const Below& where);

}  // namespace sekisho::qserver::stager
