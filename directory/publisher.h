// SPDX-License-Identifier: Apache-2.0
// Keeps one LDAP server true: connects, reads what it has of the site, writes the differences, renews.  Whatever
// goes wrong there, it begins again from what the server has then.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <asio/thread_pool.hpp>

#include "common/loop.h"
#include "directory/differ.h"
#include "glue/ldap.h"

namespace sekisho::directory {

class Publisher {
 public:
  struct Options {
    glue::Ldap::Options server;
    std::string ca_directory;  // read anew for each connection; empty: no TLS
    std::string base;
    std::string site_dn;
    int validity_s = 120;
  };

  Publisher(Loop& loop, Options options);
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  // The newest word counts.  `removes`: what is not among them goes at once, else it ages out.
  void Want(std::shared_ptr<const std::vector<glue::Entry>> entries, bool removes);

  awaitable<void> Run();  // for ever

 private:
  struct Opened {
    std::shared_ptr<glue::Ldap> server;
    Published published;
    bool has_expiry = false;
  };

  static absl::StatusOr<Opened> Open(const Options& options);
  awaitable<absl::Status> KeepTrue(Opened opened);
  DiffRules Rules(bool has_expiry) const;
  void Report(const absl::Status& status);

  Loop& loop_;
  const Options options_;
  asio::thread_pool worker_{1};  // LDAP's calls block
  Signal changed_;
  std::shared_ptr<const std::vector<glue::Entry>> wanted_;
  bool removes_ = true;
  uint64_t generation_ = 0;
  std::string last_problem_;
};

}  // namespace sekisho::directory
