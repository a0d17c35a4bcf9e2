// SPDX-License-Identifier: Apache-2.0
#include "client/world/profile_cache.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include <fmt/format.h>

#include "common/identity/openssl.h"

namespace sekisho::client {
namespace {

std::filesystem::path CacheFolder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  const std::filesystem::path base = cache != nullptr && *cache == '/' ? std::filesystem::path(cache)
                                     : home != nullptr                ? std::filesystem::path(home) / ".cache"
                                                                      : std::filesystem::path(".cache");
  return base / "sekisho" / "profiles";
}

}  // namespace

std::string ProfilePath(const std::vector<WorldPart>& parts) {
  std::string key = "1\n";
  for (const WorldPart& part : parts) {
    key += fmt::format("{} {}\n{}\n", part.site, part.ranks.count, part.rsl);
    for (const auto& file : part.files) {
      key += file.sha256();
    }
  }
  return CacheFolder() / identity::Sha256Hex(key);
}

absl::StatusOr<TrafficReport> LoadProfile(const std::string& path, int ranks) {
  std::ostringstream text;
  if (!(text << std::ifstream(path).rdbuf())) {
    return absl::NotFoundError("no profile");
  }
  return TrafficReport::Parse(text.str(), ranks);
}

absl::Status SaveProfile(const std::string& path, const TrafficReport& report) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  const std::string aside = fmt::format("{}.{}", path, getpid());
  std::ofstream file(aside);
  file << report.Print();
  file.close();
  if (!file || std::rename(aside.c_str(), path.c_str()) != 0) {
    std::filesystem::remove(aside, error);
    return absl::UnavailableError(fmt::format("{}: cannot be written", path));
  }
  return absl::OkStatus();
}

}  // namespace sekisho::client
