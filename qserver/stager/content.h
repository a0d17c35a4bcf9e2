// SPDX-License-Identifier: Apache-2.0
// SHA-256 of what passes by, and copying from file to file with it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/status.h"

struct evp_md_ctx_st;

namespace sekisho::qserver::stager {

class Sum {
 public:
  Sum();
  ~Sum();
  Sum(const Sum&) = delete;
  Sum& operator=(const Sum&) = delete;

  void Add(std::string_view data);
  std::string Finish();  // 32 bytes; once

 private:
  evp_md_ctx_st* const context_;
};

std::string Hex(std::string_view bytes);

// All of it, or why not.
absl::Status WriteAll(int fd, std::string_view data, const std::string& name);

// Reads `from` from where it stands to its end, into `to` (none: -1), and the sum.  How much there was.
absl::StatusOr<uint64_t> CopyRest(int from, int to, Sum& sum, const std::string& from_name, const std::string& to_name);

}  // namespace sekisho::qserver::stager
