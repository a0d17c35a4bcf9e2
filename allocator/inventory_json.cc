// SPDX-License-Identifier: Apache-2.0
#include "allocator/inventory_json.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "allocator/errors.h"

namespace sekisho::allocator {
namespace {

using Json = nlohmann::json;

int LineOf(std::string_view text, size_t offset) {
  return 1 + int(std::count(text.begin(), text.begin() + std::min(offset, text.size()), '\n'));
}

// The lines on which the objects inside the one top-level list begin: the library keeps no
// positions.
std::vector<int> LinesOfResources(std::string_view text) {
  std::vector<int> lines;
  int line = 1, depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      while (++at < text.size() && text[at] != '"') {
        at += text[at] == '\\';
      }
    } else if (c == '/') {
      const bool is_line = text.substr(at, 2) == "//";
      const size_t end = text.find(is_line ? "\n" : "*/", at + 2);
      const size_t next = end == std::string_view::npos ? text.size() : end + (is_line ? 0 : 2);
      line += int(std::count(text.begin() + at, text.begin() + next, '\n'));
      at = next - 1;
    } else if (c == '\n') {
      ++line;
    } else if (c == '{' || c == '[') {
      if (c == '{' && depth == 2) {
        lines.push_back(line);
      }
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return lines;
}

// Builds the document, remembers where it is not JSON and stops at a senseless depth.
class Reader final : public nlohmann::detail::json_sax_dom_parser<Json> {
 public:
  Reader(Json& root, size_t& error_at) : json_sax_dom_parser(root, false), error_at_(error_at) {}

  bool start_object(size_t size) { return Enter() && json_sax_dom_parser::start_object(size); }
  bool start_array(size_t size) { return Enter() && json_sax_dom_parser::start_array(size); }
  bool end_object() { return --depth_, json_sax_dom_parser::end_object(); }
  bool end_array() { return --depth_, json_sax_dom_parser::end_array(); }

  template <class Exception>
  bool parse_error(size_t position, const std::string& token, const Exception& error) {
    error_at_ = position == 0 ? 0 : position - 1;
    return json_sax_dom_parser::parse_error(position, token, error);
  }

  bool is_too_deep() const { return depth_ > 8; }

 private:
  bool Enter() { return ++depth_ <= 8; }

  size_t& error_at_;
  int depth_ = 0;
};

absl::Status Expected(const std::string& key, const char* what, const Json& seen) {
  return absl::InvalidArgumentError(
      fmt::format("{}: expected {}, saw {}", key, what,
                  Printable(seen.dump(-1, ' ', true, Json::error_handler_t::replace))));
}

absl::Status ReadNumber(const std::string& key, const Json& value, int64_t max, int64_t& out) {
  if (!value.is_number_integer() || value.get<int64_t>() < 1 || value.get<int64_t>() > max ||
      (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(max))) {
    return Expected(key, fmt::format("a number from 1 to {}", max).c_str(), value);
  }
  out = value.get<int64_t>();
  return absl::OkStatus();
}

absl::Status ReadText(const std::string& key, const Json& value, std::string& out) {
  if (!value.is_string() || !IsName(value.get_ref<const std::string&>())) {
    return Expected(key, "a word of letters, digits, '.', '_' or '-'", value);
  }
  out = value.get<std::string>();
  return absl::OkStatus();
}

absl::Status ReadTexts(const std::string& key, const Json& value, std::vector<std::string>& out) {
  if (!value.is_array() || value.empty()) {
    return Expected(key, "a list of words", value);
  }
  for (const Json& element : value) {
    RETURN_IF_ERROR(ReadText(key, element, out.emplace_back()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Resource> ReadResource(const Json& object) {
  if (!object.is_object()) {
    return Expected("resource", "an object", object);
  }
  Resource resource;
  std::string type = "c", epithet;
  int64_t procs = 0, nnodes = 0, clock = 0, memory = 0;
  std::vector<std::string> nodes;
  for (const auto& [key, value] : object.items()) {
    absl::Status status;
    if (key == "name") {
      status = ReadText(key, value, resource.name);
    } else if (key == "type") {
      status = ReadText(key, value, type);
    } else if (key == "procs") {
      status = ReadNumber(key, value, kMaxProcessorsPerNode, procs);
    } else if (key == "nnodes") {
      status = ReadNumber(key, value, kMaxNodes, nnodes);
    } else if (key == "clock") {
      status = ReadNumber(key, value, 1'000'000, clock);
    } else if (key == "epithet") {
      status = ReadText(key, value, epithet);
    } else if (key == "nodes") {
      status = ReadTexts(key, value, nodes);
    } else if (key == "architecture") {
      status = ReadText(key, value, resource.architecture);
    } else if (key == "os") {
      status = ReadText(key, value, resource.os);
    } else if (key == "memory") {
      status = ReadNumber(key, value, int64_t{1} << 40, memory);
    } else if (key == "tags") {
      status = ReadTexts(key, value, resource.tags);
    } else if (key == "queues") {
      status = ReadTexts(key, value, resource.queues);
    } else {
      status = errors::UnknownInventoryKey(Printable(key));
    }
    RETURN_IF_ERROR(status);
  }
  resource.clock_mhz = int(clock);
  resource.memory_mb = memory;

  if (type != "c" && type != "p") {
    return Expected("type", "\"c\" (cluster) or \"p\" (parallel machine)", type);
  }
  if (procs == 0) {
    return absl::InvalidArgumentError("procs: expected the processors of a node, saw none");
  }
  if (nodes.empty()) {
    if (nnodes == 0 || epithet.empty()) {
      return absl::InvalidArgumentError("expected \"nodes\", or \"nnodes\" and \"epithet\"");
    }
    RETURN_IF_ERROR(NameNodes(type == "p", procs, nnodes, epithet, resource));
    return resource;
  }
  if (nnodes != 0 || !epithet.empty() || type == "p") {
    return absl::InvalidArgumentError(
        "\"nodes\" names the nodes of a cluster; expected no \"nnodes\", no \"epithet\", no type "
        "\"p\"");
  }
  resource.processors_per_node = int(procs);
  resource.nodes = std::move(nodes);
  return resource;
}

}  // namespace

absl::StatusOr<Inventory> ParseJsonInventory(std::string_view text, const std::string& file) {
  size_t error_at = std::string_view::npos;
  Json document;
  Reader reader(document, error_at);
  Json::sax_parse(text.begin(), text.end(), &reader, Json::input_format_t::json, true, true);
  if (reader.is_too_deep()) {
    return errors::BadInventory(file, 1,
                                absl::InvalidArgumentError("expected JSON of at most 8 levels"));
  }
  if (error_at != std::string_view::npos) {
    const std::string seen =
        error_at < text.size() ? Printable(text.substr(error_at, 1)) : "the end";
    return errors::BadInventory(file, LineOf(text, error_at),
                                absl::InvalidArgumentError("expected JSON, stopped at " + seen));
  }
  if (!document.is_object() || document.size() != 1 || !document.contains("resource") ||
      !document["resource"].is_array() || document["resource"].empty()) {
    return errors::BadInventory(
        file, 1,
        absl::InvalidArgumentError("expected {\"resource\": [{...}, ...]} and nothing beside it"));
  }

  const std::vector<int> lines = LinesOfResources(text);
  Inventory inventory;
  InventoryNames names;
  for (const Json& object : document["resource"]) {
    const size_t index = inventory.resources.size();
    const int line = index < lines.size() ? lines[index] : 1;
    absl::StatusOr<Resource> resource = ReadResource(object);
    if (!resource.ok()) {
      return errors::BadInventory(file, line, resource.status());
    }
    if (absl::Status status = names.Add(*resource, line); !status.ok()) {
      return errors::BadInventory(file, line, status);
    }
    inventory.resources.push_back(*std::move(resource));
  }
  return inventory;
}

}  // namespace sekisho::allocator
