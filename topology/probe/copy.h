// SPDX-License-Identifier: Apache-2.0
// A file on its way through this host: what of it is here, whole or growing, and its digest.
// docs/protocol/12-topology.md, "Copies".
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <openssl/evp.h>

#include "common/status.h"
#include "topology/probe/pace.h"

namespace sekisho::topology {

class Copy {
 public:
  // The file that all others get.
  static absl::StatusOr<std::unique_ptr<Copy>> Open(const std::string& path);
  // One that is to become `path`: until Commit() it is PATH.part, and goes away with this object.
  // What a prober that was killed left there is begun anew; another file there, or one under way,
  // is not touched.
  static absl::StatusOr<std::unique_ptr<Copy>> Create(const std::string& path, uint64_t size);
  ~Copy();
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  uint64_t size() const { return size_; }
  uint64_t have() const { return have_; }
  bool IsWhole() const { return have_ == size_; }

  absl::Status Append(const char* bytes, size_t count);
  // Fewer than `count` at the end of what is here.  What is read for the first time goes into the
  // digest as well, so that at the end of a copy it is there.
  absl::StatusOr<size_t> Read(uint64_t offset, char* bytes, size_t count);

  Pace& pace() { return pace_; }

  // SHA-256 of what is here, in hexadecimal; the end of it.
  absl::StatusOr<std::string> Digest();
  absl::Status Commit();

 private:
  Copy(std::string path, int file, uint64_t size, uint64_t have, bool is_ours);

  std::string path_;
  int file_;
  uint64_t size_;
  uint64_t have_;
  bool is_ours_;  // PATH.part, to be removed
  EVP_MD_CTX* hash_;
  uint64_t hashed_ = 0;
  Pace pace_;
};

}  // namespace sekisho::topology
