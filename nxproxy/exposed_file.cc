// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/exposed_file.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "common/identity/files.h"
#include "nxproxy/wire/message.h"

namespace sekisho::nxproxy {

std::map<std::string, Bound> ReadExposed(const std::string& path) {
  std::map<std::string, Bound> out;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string target, port, hex;
    Bound bound;
    if (!(words >> target >> port >> bound.endpoint >> hex) ||
        hex.size() != 2 * wire::kSecretBytes ||
        hex.find_first_not_of("0123456789abcdef") != std::string::npos) {
      continue;
    }
    for (size_t i = 0; i < hex.size(); i += 2) {
      bound.secret += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    }
    out[target + " " + port] = bound;
  }
  return out;
}

absl::Status WriteExposed(const std::string& path, const std::map<std::string, Bound>& bounds) {
  std::string text;
  for (const auto& [name, bound] : bounds) {
    text += fmt::format("{} {} ", name, bound.endpoint);
    for (const char byte : bound.secret) {
      text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    }
    text += '\n';
  }
  std::error_code ignored;
  std::filesystem::create_directory(std::filesystem::path(path).parent_path(), ignored);
  return identity::WritePrivateFile(path, text);
}

}  // namespace sekisho::nxproxy
