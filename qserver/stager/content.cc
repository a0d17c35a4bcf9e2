// SPDX-License-Identifier: Apache-2.0
#include "qserver/stager/content.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "common/write_all.h"

namespace sekisho::qserver::stager {

Sum::Sum() : context_(EVP_MD_CTX_new()) { CHECK(EVP_DigestInit_ex(context_, EVP_sha256(), nullptr) == 1); }
Sum::~Sum() { EVP_MD_CTX_free(context_); }

void Sum::Add(std::string_view data) { CHECK(EVP_DigestUpdate(context_, data.data(), data.size()) == 1); }

std::string Sum::Finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  CHECK(EVP_DigestFinal_ex(context_, digest, &size) == 1);
  return {reinterpret_cast<const char*>(digest), size};
}

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

absl::Status WriteAll(int fd, std::string_view data, const std::string& name) {
  if (!sekisho::WriteAll(fd, data)) {
    return absl::ResourceExhaustedError(fmt::format("cannot write {}: {}", name, std::strerror(errno)));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> CopyRest(int from, int to, Sum& sum, const std::string& from_name,
                                  const std::string& to_name) {
  std::string buffer(256 << 10, '\0');
  uint64_t size = 0;
  for (;;) {
    const ssize_t got = read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return absl::FailedPreconditionError(fmt::format("cannot read {}: {}", from_name, std::strerror(errno)));
    }
    if (got == 0) {
      return size;
    }
    const std::string_view data(buffer.data(), size_t(got));
    sum.Add(data);
    size += data.size();
    if (to >= 0) {
      RETURN_IF_ERROR(WriteAll(to, data, to_name));
    }
  }
}

}  // namespace sekisho::qserver::stager
