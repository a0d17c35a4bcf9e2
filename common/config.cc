// SPDX-License-Identifier: Apache-2.0
#include "common/config.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <nlohmann/json.hpp>

namespace sekisho {
namespace {

constexpr size_t kMaxConfigBytes = 16 << 20;

// Line and column, from 1, of a byte position as nlohmann's parser counts it.
std::string LineColumn(const std::string& text, size_t byte) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(byte, text.size()));
  const auto line = std::count(text.begin(), end, '\n') + 1;
  const auto start = std::find(std::make_reverse_iterator(end), text.rend(), '\n').base();
  return fmt::format("{}:{}", line, end - start + (byte > text.size() ? 1 : 0));
}

// Keeps the reason of the parse error, without nlohmann's own numbering.
class ErrorCatcher : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    position_ = position;
    reason_ = e.what();
    if (const auto dash = reason_.find(" - "); dash != std::string::npos) {
      reason_ = reason_.substr(dash + 3);  // "unexpected '}'; expected string literal"
    } else if (const auto bracket = reason_.find("] "); bracket != std::string::npos) {
      reason_ = reason_.substr(bracket + 2);
    }
    return false;
  }

  size_t position_ = 0;
  std::string reason_;
};

// protobuf says "(service[0].nmae): Cannot find field."; we say "service[0].nmae: unknown key".
std::string Explain(const std::string& message) {
  static const std::regex unknown(R"(^(?:\(([^)]*)\) ?)?([^:]*): Cannot find field\.$)");
  static const std::regex wrong(R"(^\(?([^)]*)\)?: (.*)$)");
  std::smatch match;
  if (std::regex_match(message, match, unknown)) {
    const std::string where = match[1];
    return fmt::format("{}{}{}: unknown key", where, where.empty() ? "" : ".", match[2].str());
  }
  if (std::regex_match(message, match, wrong)) {
    return fmt::format("{}: {}", match[1].str(), match[2].str());
  }
  return message;
}

}  // namespace

absl::Status ParseConfigInto(const std::string& text, const std::string& name,
                             google::protobuf::Message& config) {
  ErrorCatcher catcher;
  if (!nlohmann::json::sax_parse(text, &catcher, nlohmann::json::input_format_t::json, true, true)) {
    return absl::InvalidArgumentError(
        fmt::format("{}:{}: {}", name, LineColumn(text, catcher.position_), catcher.reason_));
  }
  const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false, true);
  if (!parsed.is_object()) {
    return absl::InvalidArgumentError(fmt::format("{}:1:1: expected an object {{...}}", name));
  }

  config.Clear();
  const auto status = google::protobuf::util::JsonStringToMessage(parsed.dump(), &config);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {}", name, Explain(std::string(status.message().data(), status.message().size()))));
  }
  return absl::OkStatus();
}

absl::Status LoadConfigInto(const std::string& path, google::protobuf::Message& config) {
  std::ifstream file(path, std::ios::binary);
  if (std::error_code unused; std::filesystem::is_directory(path, unused)) {
    return absl::InvalidArgumentError(fmt::format("{}: expected a configuration file, saw a directory", path));
  }
  if (!file) {
    return absl::NotFoundError(fmt::format("{}: cannot open the configuration file: {}", path, std::strerror(errno)));
  }
  std::ostringstream text;
  text << file.rdbuf();
  if (text.str().size() > kMaxConfigBytes) {
    return absl::InvalidArgumentError(fmt::format("{}: larger than 16 MiB", path));
  }
  return ParseConfigInto(text.str(), path, config);
}

}  // namespace sekisho
