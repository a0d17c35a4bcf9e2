// SPDX-License-Identifier: Apache-2.0
#include "directory/json.h"

#include <algorithm>
#include <charconv>

namespace sekisho::directory {
namespace {

constexpr std::string_view kPrefix = "GLUE2";
constexpr std::string_view kAbstract[] = {"Entity",  "Domain",   "Service",  "Endpoint", "Share",
                                          "Manager", "Resource", "Activity", "Policy"};

// Attributes that hold one value at most have it bare; which these are the schema says.
bool HoldsMany(std::string_view name) {
  for (const std::string_view many :
       {"OtherInfo", "WWW", "Capability", "Rule", "ForeignKey", "JobDescription", "Tag", "StatusInfo"}) {
    if (name.ends_with(many)) {
      return true;
    }
  }
  return name == "State";  // of an activity
}

// "GLUE2ComputingShareFreeSlots" of a ComputingShare is "FreeSlots"; of its base class, the same.
std::string ShortName(std::string_view attribute, std::string_view object_class) {
  std::string_view name = attribute.substr(kPrefix.size());
  if (name.starts_with(object_class)) {
    return std::string(name.substr(object_class.size()));
  }
  for (const std::string_view base : kAbstract) {
    if (name.starts_with(base) && (base == "Entity" || object_class.ends_with(base) ||
                                   (base == "Resource" && object_class == "ExecutionEnvironment"))) {
      return std::string(name.substr(base.size()));
    }
  }
  return std::string(name);
}

nlohmann::ordered_json Value(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && std::to_string(number) == text) {
    return number;
  }
  if (text == "TRUE" || text == "FALSE") {
    return text == "TRUE";
  }
  return text;
}

}  // namespace

nlohmann::ordered_json ToJson(const std::vector<glue::Entry>& entries) {
  nlohmann::ordered_json document = nlohmann::ordered_json::object();
  for (const glue::Entry& entry : entries) {
    std::string_view most_derived;
    for (const std::string& name : entry.All("objectClass")) {
      if (name.starts_with(kPrefix)) {
        most_derived = std::string_view(name).substr(kPrefix.size());
      }
    }
    if (most_derived.empty() || most_derived == "Group") {
      continue;  // places in the tree, no things
    }
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (const auto& [attribute, values] : entry.attributes) {
      if (!attribute.starts_with(kPrefix)) {
        continue;
      }
      const std::string name = ShortName(attribute, most_derived);
      if (!HoldsMany(name)) {
        object[name] = name.ends_with("ID") ? nlohmann::ordered_json(values.front()) : Value(values.front());
        continue;
      }
      object[name] = values;
    }
    document[std::string(most_derived)].push_back(std::move(object));
  }
  return document;
}

}  // namespace sekisho::directory
