// SPDX-License-Identifier: Apache-2.0
#include "qserver/stager/below.h"

#include <algorithm>

#include <fmt/format.h>

namespace sekisho::qserver::stager {
namespace {

constexpr size_t kPathMost = 4096;

}  // namespace

std::vector<std::string_view> Components(std::string_view path) {
  std::vector<std::string_view> components;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view component = path.substr(0, slash);
    if (!component.empty() && component != ".") {
      components.push_back(component);
    }
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return components;
}

std::string Joined(const std::vector<std::string_view>& components, size_t begin, size_t end) {
  std::string path;
  for (size_t i = begin; i < end; ++i) {
    path += path.empty() ? "" : "/";
    path += components[i];
  }
  return path;
}

absl::StatusOr<Below> FindBelow(const std::vector<std::string>& roots, std::string_view path) {
  const auto refuse = [&](const std::string& expected) {
    return absl::InvalidArgumentError(fmt::format("expected {}, saw \"{}\"", expected, path.substr(0, 200)));
  };
  if (path.size() > kPathMost || path.find('\0') != std::string_view::npos) {
    return refuse(fmt::format("a path of at most {} bytes", kPathMost));
  }
  const std::vector<std::string_view> components = Components(path);
  if (std::count(components.begin(), components.end(), "..") > 0) {
    return refuse("a path without \"..\"");
  }
  for (const std::string& root : roots) {
    const std::vector<std::string_view> above = Components(root);
    if (path.starts_with("/") && above.size() <= components.size() &&
        std::equal(above.begin(), above.end(), components.begin())) {
      return Below{root, Joined(components, above.size(), components.size())};
    }
  }
  return refuse(fmt::format("a path below {}", fmt::join(roots, " or ")));
}

}  // namespace sekisho::qserver::stager
