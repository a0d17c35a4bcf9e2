// SPDX-License-Identifier: Apache-2.0
#include "common/asked.h"

#include <fmt/format.h>

namespace sekisho {

uint64_t AskedBy(const proto::RequestBody::Submit& submit) {
  std::string asked = submit.rsl();
  for (const auto& file : submit.file()) {
    asked += '\0' + file.url() + '\0' + file.sha256();
  }
  uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const char c : asked) {
    hash = (hash ^ uint8_t(c)) * 1099511628211U;
  }
  return hash;
}

uint64_t AskedBy(const proto::JobEvent::Submitted& submitted) {
  proto::RequestBody body;
  return body.ParseFromString(submitted.request().body()) && body.has_submit() ? AskedBy(body.submit()) : submitted.asked();
}

std::string KnownAlready(const std::string& site, const std::string& job_id) {
  return fmt::format("the request is known already: nothing new was started, it is job {}/{}", site, job_id);
}

}  // namespace sekisho
