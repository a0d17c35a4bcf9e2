// SPDX-License-Identifier: Apache-2.0
// A connection to an LDAP server.  Its calls block, each no longer than `Options::timeout` without an answer;
// who has a loop calls from a thread of its own.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "glue/change.h"
#include "glue/entry.h"

namespace sekisho::glue {

class Ldap {
 public:
  struct Options {
    std::string url;            // ldap://HOST:PORT, ldaps://, ldapi://
    bool starts_tls = false;    // on ldap://
    bool is_external = false;   // binds as what the certificate says (SASL EXTERNAL); else anonymous
    std::string ca_file;        // a bundle; empty: the system's
    std::string crl_file;       // a bundle; empty: none
    std::string certificate, key;
    std::chrono::milliseconds timeout{5'000};
  };
  enum class Scope { kBase, kOneLevel, kSubtree };

  // Unavailable if nobody answers; PermissionDenied or Unauthenticated if one of the two sides is refused.
  static absl::StatusOr<std::unique_ptr<Ldap>> Open(const Options& options);
  ~Ldap();
  Ldap(const Ldap&) = delete;
  Ldap& operator=(const Ldap&) = delete;

  // The entries in the server's order; `attributes` empty: all that users set.  NotFound if there is no `base`.
  absl::StatusOr<std::vector<Entry>> Search(const std::string& base, Scope scope, const std::string& filter,
                                            const std::vector<std::string>& attributes = {});
  // The same, each as it comes.
  using Each = std::function<void(Entry)>;
  absl::Status Search(const std::string& base, Scope scope, const std::string& filter,
                      const std::vector<std::string>& attributes, const Each& each);

  // Carries `changes` out in order as far as it matters: what may happen side by side, does.  After an error
  // some may have been done and others not.
  absl::Status Apply(const std::vector<Change>& changes);

  // The connection's socket: readable while no call is under way, the server has closed it.
  int descriptor() const;

 private:
  struct Handle;
  Ldap(Options options, std::unique_ptr<Handle> handle);

  absl::Status Fail(int code, const std::string& what) const;
  absl::StatusOr<int> Send(const Change& change);
  absl::Status Await(std::map<int, const Change*>& sent, size_t most);

  const Options options_;
  const std::unique_ptr<Handle> handle_;
};

}  // namespace sekisho::glue
