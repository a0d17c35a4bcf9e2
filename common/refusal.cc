// SPDX-License-Identifier: Apache-2.0
#include "common/refusal.h"

#include <charconv>

#include <absl/strings/cord.h>
#include <fmt/format.h>

namespace sekisho {
namespace {

constexpr char kPayload[] = "sekisho/refusal";  // "<gram code>\n<remedy>"

std::string PayloadOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  return payload ? std::string(*payload) : std::string();
}

}  // namespace

absl::Status Refuse(absl::StatusCode code, int gram_code, const std::string& message,
                    const std::string& remedy) {
  absl::Status status(code, message);
  status.SetPayload(kPayload, absl::Cord(fmt::format("{}\n{}", gram_code, remedy)));
  return status;
}

int GramCode(const absl::Status& status) {
  const std::string payload = PayloadOf(status);
  int code = 0;
  std::from_chars(payload.data(), payload.data() + payload.size(), code);
  return code;
}

std::string Remedy(const absl::Status& status) {
  const std::string payload = PayloadOf(status);
  const auto line = payload.find('\n');
  return line == std::string::npos ? "" : payload.substr(line + 1);
}

std::string Message(const absl::Status& status) {
  return std::string(status.message().data(), status.message().size());
}

std::string RefusalPayload(const absl::Status& status) { return PayloadOf(status); }

absl::Status WithRefusalPayload(absl::Status status, const std::string& payload) {
  status.SetPayload(kPayload, absl::Cord(payload));
  return status;
}

}  // namespace sekisho
