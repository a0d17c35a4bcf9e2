// SPDX-License-Identifier: Apache-2.0
// Files of one account by their content: $HOME/.sekisho/cache/SHA256, or where a job says.  What comes is SHA256.JOB.part until it is
// whole and what it was said to be.  Until somebody has it, it is sticky (S_ISVTX): the first who wants a file of his own is
// given this very one, which costs nothing; whoever comes later gets a copy, summed again.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "qserver/stager.pb.h"
#include "qserver/stager/beneath.h"
#include "qserver/stager/content.h"

namespace sekisho::qserver::stager {

class Cache {
 public:
  // In the directory `place`, which is made when it is needed.
  Cache(Below place, std::string job_id) : place_(std::move(place)), job_id_(std::move(job_id)) {}

  StagerReply::Have Look(const Content& content) const;

  // A file that comes, from `offset()` on.
  class Incoming {
   public:
    uint64_t offset() const { return offset_; }
    absl::Status Add(std::string_view data);  // OutOfRange: more than it is to have
    void Drop();                              // it is to be sent anew

   private:
    friend class Cache;
    Content content_;
    std::string name_;
    std::string path_;
    Fd directory_;
    Fd fd_;
    uint64_t offset_ = 0;
    uint64_t flushing_ = 0;  // on its way to the disk, up to here
    std::unique_ptr<Sum> sum_;
  };
  absl::StatusOr<Incoming> Receive(const Content& content) const;
  // It is whole, and in the cache; none: not whole yet.  DataLoss: it is something else, and gone.
  absl::StatusOr<std::optional<Stamp>> Finish(Incoming incoming) const;

  // One whose content is not known before: `source` gives it piece by piece.
  using Add = std::function<absl::Status(std::string_view data)>;
  struct Taken {
    Content content;
    Stamp seen;
  };
  absl::StatusOr<Taken> Take(const std::function<absl::Status(const Add&)>& source) const;

  // A file at `target` with this content, made aside and renamed; or a symbolic link to the cache's.  DataLoss: the cache's was
  // something else, and is gone.  What is still as it was `seen` is not read again.
  absl::Status Place(const Content& content, const Below& target, unsigned mode, bool is_link, const Stamp& seen) const;

  // Beyond `bytes` what was longest unused goes.  What comes, or has come, for a job that does not have it yet counts not,
  // and goes if a week later it has still not.
  void Trim(uint64_t bytes) const;

 private:
  Below At(const std::string& name) const { return {place_.root, place_.path + "/" + name}; }
  std::string PartOf(const Content& content) const;
  std::string Aside() const { return "." + job_id_ + ".part"; }
  absl::Status Fill(const Fd& from, const Content& content, const Below& beside, unsigned mode,
                    const std::string& name) const;  // as errors say it
  absl::Status Share(const Fd& from, const Content& content, bool is_known) const;

  const Below place_;
  const std::string job_id_;
};

}  // namespace sekisho::qserver::stager
