// SPDX-License-Identifier: Apache-2.0
#include "allocator/inventory.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include "allocator/errors.h"
#include "allocator/inventory_json.h"

namespace sekisho::allocator {
namespace {

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  size_t at = 0;
  while ((at = line.find_first_not_of(" \t\r\f\v", at)) != std::string_view::npos) {
    const size_t end = std::min(line.find_first_of(" \t\r\f\v", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

std::optional<int64_t> Number(std::string_view word, int64_t max) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < 1 || value > max) {
    return std::nullopt;
  }
  return value;
}

// `Name type procs nnodes clock epithet`
absl::StatusOr<Resource> ParseRow(const std::vector<std::string_view>& words) {
  if (words.size() != 6) {
    return absl::InvalidArgumentError(fmt::format(
        "expected 6 columns (Name type procs nnodes clock epithet), saw {}", words.size()));
  }
  if (words[1] != "c" && words[1] != "p") {
    return absl::InvalidArgumentError(fmt::format(
        "type: expected 'c' (cluster) or 'p' (parallel machine), saw \"{}\"", Printable(words[1])));
  }
  int64_t numbers[3];
  constexpr const char* kColumn[] = {"procs", "nnodes", "clock"};
  constexpr int64_t kMax[] = {kMaxProcessorsPerNode, kMaxNodes, 1'000'000};
  for (int i = 0; i < 3; ++i) {
    const std::optional<int64_t> number = Number(words[2 + i], kMax[i]);
    if (!number) {
      return absl::InvalidArgumentError(
          fmt::format("{}: expected a number from 1 to {}, saw \"{}\"", kColumn[i], kMax[i],
                      Printable(words[2 + i])));
    }
    numbers[i] = *number;
  }
  Resource resource;
  resource.name = words[0];
  resource.clock_mhz = int(numbers[2]);
  RETURN_IF_ERROR(
      NameNodes(words[1] == "p", numbers[0], numbers[1], std::string(words[5]), resource));
  return resource;
}

absl::StatusOr<Inventory> ParseTable(std::string_view text, const std::string& file) {
  Inventory inventory;
  InventoryNames names;
  int line_number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string_view> words = Words(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    if (words.empty() || words[0].front() == '#') {
      continue;
    }
    absl::StatusOr<Resource> resource = ParseRow(words);
    if (!resource.ok()) {
      return errors::BadInventory(file, line_number, resource.status());
    }
    if (absl::Status status = names.Add(*resource, line_number); !status.ok()) {
      return errors::BadInventory(file, line_number, status);
    }
    inventory.resources.push_back(*std::move(resource));
  }
  if (inventory.resources.empty()) {
    return errors::BadInventory(
        file, line_number, absl::InvalidArgumentError("expected at least one resource, saw none"));
  }
  return inventory;
}

// The first character that is neither blank nor in a // comment.
char FirstCharacter(std::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size());
    } else if (!std::strchr(" \t\r\n", text[at]) || text[at] == '\0') {
      return text[at];
    }
  }
  return '\0';
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string out;
  for (const unsigned char c : text.substr(0, 80)) {
    out += c >= ' ' && c < 0x7f ? fmt::format("{:c}", char(c)) : fmt::format("\\x{:02x}", c);
  }
  return text.size() > 80 ? out + "..." : out;
}

bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= 255 &&
         name.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
             std::string_view::npos;
}

absl::Status NameNodes(bool is_machine, int64_t procs, int64_t nnodes, const std::string& epithet,
                       Resource& resource) {
  if (!IsName(epithet)) {
    return absl::InvalidArgumentError(fmt::format(
        "epithet: expected letters, digits, '.', '_' or '-', saw \"{}\"", Printable(epithet)));
  }
  resource.is_machine = is_machine;
  if (is_machine) {
    if (procs * nnodes > kMaxProcessorsPerNode) {
      return absl::InvalidArgumentError(fmt::format("procs x nnodes: expected at most {}, saw {}",
                                                    kMaxProcessorsPerNode, procs * nnodes));
    }
    resource.processors_per_node = int(procs * nnodes);
    resource.nodes = {epithet};
    return absl::OkStatus();
  }
  resource.processors_per_node = int(procs);
  for (int64_t i = 0; i < nnodes; ++i) {
    resource.nodes.push_back(fmt::format("{}{}", epithet, i));
  }
  return absl::OkStatus();
}

absl::Status InventoryNames::Add(const Resource& resource, int line) {
  if (!IsName(resource.name)) {
    return absl::InvalidArgumentError(fmt::format(
        "Name: expected letters, digits, '.', '_' or '-', saw \"{}\"", Printable(resource.name)));
  }
  if (const auto [at, is_new] = resources_.emplace(resource.name, line); !is_new) {
    return absl::InvalidArgumentError(
        fmt::format("Name: expected each resource once, saw {} again (first in line {})",
                    resource.name, at->second));
  }
  for (const std::string& node : resource.nodes) {
    if (const auto [at, is_new] = nodes_.emplace(node, line); !is_new) {
      return absl::InvalidArgumentError(fmt::format(
          "node names: expected each once, saw {} again (first in line {})", node, at->second));
    }
  }
  if (int64_t(nodes_.size()) > kMaxNodes) {
    return absl::InvalidArgumentError(fmt::format("expected at most {} nodes in all", kMaxNodes));
  }
  return absl::OkStatus();
}

std::vector<std::string> Inventory::queues() const {
  std::set<std::string> all;
  for (const Resource& resource : resources) {
    all.insert(resource.queues.begin(), resource.queues.end());
  }
  return {all.begin(), all.end()};
}

absl::StatusOr<Inventory> ParseInventory(std::string_view text, const std::string& file) {
  if (text.size() > kMaxInventoryBytes) {
    return errors::BadInventory(
        file, 1,
        absl::InvalidArgumentError(
            fmt::format("expected at most {} bytes, saw {}", kMaxInventoryBytes, text.size())));
  }
  return FirstCharacter(text) == '{' ? ParseJsonInventory(text, file) : ParseTable(text, file);
}

absl::StatusOr<Inventory> LoadInventory(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (!file || !(text << file.rdbuf())) {
    return errors::CannotReadInventory(path, errno ? errno : EIO);
  }
  return ParseInventory(text.str(), path);
}

}  // namespace sekisho::allocator
