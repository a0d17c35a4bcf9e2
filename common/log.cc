// SPDX-License-Identifier: Apache-2.0
#include "common/log.h"

#include <cstdlib>

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "common/utf8.h"

namespace sekisho {

void InitLog(const std::string& name) {
  setenv("GRPC_VERBOSITY", "NONE", 0);  // it logs what any stranger sends; our own lines say what matters
  auto logger = spdlog::stderr_logger_mt(name);
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %L %n %v");
  const char* level = std::getenv("SEKISHO_LOG");
  logger->set_level(spdlog::level::from_str(level != nullptr ? level : "info"));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(logger);
}

std::string Printable(const std::string& text) {
  constexpr size_t kMax = 256;
  std::string out;
  for (unsigned char c : ToUtf8(text, kMax)) {
    if (c < 0x20 || c == 0x7f || c == '\\') {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += static_cast<char>(c);
    }
  }
  return text.size() > kMax ? out + "..." : out;
}

}  // namespace sekisho
