// SPDX-License-Identifier: Apache-2.0
#include "glue/bundle.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace sekisho::glue {
namespace {

bool IsHashedName(const std::string& name, bool is_list) {
  const size_t digits = is_list ? 10 : 9;
  return name.size() > digits && name.find_first_not_of("0123456789abcdef") == 8 && name[8] == '.' &&
         (!is_list || name[9] == 'r') && name.find_first_not_of("0123456789", digits) == std::string::npos;
}

std::string Joined(const std::vector<std::filesystem::path>& files) {
  std::string text;
  for (const auto& path : files) {
    std::ifstream file(path);
    text.append(std::istreambuf_iterator<char>(file), {});
    text += '\n';
  }
  return text;
}

absl::StatusOr<int> Nameless(const std::string& text) {
  const int fd = memfd_create("bundle", MFD_CLOEXEC);
  if (fd < 0 || write(fd, text.data(), text.size()) != ssize_t(text.size())) {
    return absl::UnavailableError("no memory for the authorities' certificates");
  }
  return fd;
}

std::string PathOf(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

}  // namespace

absl::StatusOr<Bundle> Bundle::Make(const std::string& ca_directory) {
  std::vector<std::filesystem::path> authorities, lists;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(ca_directory, error)) {
    const std::string name = file.path().filename();
    if (IsHashedName(name, false)) {
      authorities.push_back(file.path());
    } else if (IsHashedName(name, true)) {
      lists.push_back(file.path());
    }
  }
  if (error || authorities.empty()) {
    return absl::NotFoundError(
        fmt::format("{}: expected certificates of authorities, HASH.0; {}", ca_directory,
                    error ? error.message() : "there are none"));
  }
  ASSIGN_OR_RETURN(const int authorities_fd, Nameless(Joined(authorities)));
  Bundle bundle(authorities_fd, -1);
  if (!lists.empty()) {
    ASSIGN_OR_RETURN(bundle.lists_, Nameless(Joined(lists)));
  }
  return bundle;
}

Bundle::Bundle(Bundle&& other) noexcept
    : authorities_(std::exchange(other.authorities_, -1)), lists_(std::exchange(other.lists_, -1)) {}

Bundle::~Bundle() {
  for (const int fd : {authorities_, lists_}) {
    if (fd >= 0) {
      close(fd);
    }
  }
}

std::string Bundle::ca_file() const { return PathOf(authorities_); }
std::string Bundle::crl_file() const { return lists_ < 0 ? "" : PathOf(lists_); }

}  // namespace sekisho::glue
