// SPDX-License-Identifier: Apache-2.0
// A daemon's configuration: JSON with // comments, checked against its config.proto.  Unknown keys and
// wrong types are errors that name file, line or key path.
#pragma once

#include <string>

#include <google/protobuf/message.h>

#include "common/status.h"

namespace sekisho {

// NotFound if there is no such file; InvalidArgument "FILE:LINE:COL: ..." or "FILE: KEY.PATH: ...".
absl::Status LoadConfigInto(const std::string& path, google::protobuf::Message& config);
absl::Status ParseConfigInto(const std::string& text, const std::string& name,
                             google::protobuf::Message& config);

template <typename Config>
absl::StatusOr<Config> LoadConfig(const std::string& path) {
  Config config;
  RETURN_IF_ERROR(LoadConfigInto(path, config));
  return config;
}

// The value, or what the schema says stands for an unset one.
inline std::string OrDefault(const std::string& value, const char* fallback) {
  return value.empty() ? fallback : value;
}

}  // namespace sekisho
