// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/link_records.h"

#include <sstream>

#include <fcntl.h>
#include <unistd.h>

namespace sekisho::nxproxy::client {
namespace {

constexpr size_t kBytesMax = 256 * 1024;

const char* NameOf(TakenWay way) {
  return way == TakenWay::kDirect ? "direct" : way == TakenWay::kReversed ? "reversed" : "relayed";
}

}  // namespace

LinkRecords::LinkRecords(const std::string& path) {
  if (!path.empty()) {
    fd_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  }
}

LinkRecords::~LinkRecords() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

void LinkRecords::Listens(const std::string& addresses) {
  std::istringstream each(addresses);
  for (std::string one; std::getline(each, one, ',');) {
    Add("listens " + one + "\n");
  }
}

void LinkRecords::Connects(const wire::Address& destination, TakenWay way) {
  Add(std::string(NameOf(way)) + " " + wire::ToText(destination) + "\n");
}

// A line in one write: whoever reads meanwhile sees whole lines.
void LinkRecords::Add(const std::string& line) {
  if (fd_ < 0 || bytes_ + line.size() > kBytesMax || !said_.insert(line).second) {
    return;
  }
  const ssize_t wrote = write(fd_, line.data(), line.size());
  bytes_ += wrote > 0 ? static_cast<size_t>(wrote) : 0;
}

}  // namespace sekisho::nxproxy::client
