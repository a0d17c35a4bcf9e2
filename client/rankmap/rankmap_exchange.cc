// SPDX-License-Identifier: Apache-2.0
#include "client/rankmap/rankmap_exchange.h"

#include <fmt/format.h>

#include "client/rankmap/rankmap_files.h"

namespace sekisho::client {
namespace fs = std::filesystem;

Exchange::Exchange(std::string folder, int island) : folder_(std::move(folder)), island_(island) {}

fs::path Exchange::Own() const { return folder_ / fmt::format("{}.place", island_); }

bool Exchange::IsOver() const {
  std::error_code error;
  return !fs::is_directory(folder_, error);
}

absl::Status Exchange::Publish(std::string_view placement) const {
  const absl::Status written = WriteFile(Own().string(), placement);
  return IsOver() ? absl::OkStatus() : written;
}

std::vector<std::string> Exchange::News() {
  std::vector<std::string> news;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.extension() != ".place" || path == Own()) {
      continue;
    }
    std::error_code gone;  // renamed over, or removed with the folder
    const fs::file_time_type changed = fs::last_write_time(path, gone);
    auto [seen, is_new] = seen_.try_emplace(path.filename().string());
    if (gone || (!is_new && seen->second == changed)) {
      continue;
    }
    seen->second = changed;
    if (auto text = ReadFile(path.string()); text.ok()) {
      news.push_back(*std::move(text));
    }
  }
  return news;
}

void Exchange::Remove() const {
  std::error_code error;
  fs::path gone = folder_;
  gone += ".gone";  // first out of the way of whoever publishes meanwhile: it would never be empty
  fs::rename(folder_, gone, error);
  fs::remove_all(gone, error);
}

}  // namespace sekisho::client
