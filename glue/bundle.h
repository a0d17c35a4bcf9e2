// SPDX-License-Identifier: Apache-2.0
// Debian's LDAP client reads no hashed CA directory: the directory's authorities and revocation lists as two
// files without a name, which live as long as this.
#pragma once

#include <string>

#include "common/status.h"

namespace sekisho::glue {

class Bundle {
 public:
  // All NAME.N and NAME.rN of `ca_directory`, NAME eight hexadecimal digits.
  static absl::StatusOr<Bundle> Make(const std::string& ca_directory);
  ~Bundle();
  Bundle(Bundle&& other) noexcept;
  Bundle& operator=(Bundle&&) = delete;

  std::string ca_file() const;
  std::string crl_file() const;  // empty: there are none

 private:
  Bundle(int authorities, int lists) : authorities_(authorities), lists_(lists) {}

  int authorities_;
  int lists_;  // -1: none
};

}  // namespace sekisho::glue
