// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/link_records.h"

#include <sstream>

#include <fcntl.h>
#include <unistd.h>

namespace sekisho::nxproxy::client {
namespace {

constexpr size_t kBytesMax = 256 * 1024;
constexpr int64_t kWriteMs = 200;

const char* NameOf(TakenWay way) {
  return way == TakenWay::kDirect ? "direct" : way == TakenWay::kReversed ? "reversed" : "relayed";
}

}  // namespace

LinkRecords::LinkRecords(Loop& loop, const std::string& path) : loop_(loop) {
  if (!path.empty()) {
    fd_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  }
}

LinkRecords::~LinkRecords() {
  loop_.Cancel(write_);
  Write();
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

void LinkRecords::Add(const std::string& line) {
  if (fd_ < 0 || bytes_ + line.size() > kBytesMax || !said_.insert(line).second) {
    return;
  }
  bytes_ += line.size();
  if (unwritten_.empty()) {
    write_ = loop_.After(kWriteMs, [this] { Write(); });
  }
  unwritten_ += line;
}

// All in one write: whoever reads meanwhile sees whole lines.
void LinkRecords::Write() {
  if (!unwritten_.empty() && write(fd_, unwritten_.data(), unwritten_.size()) < 0) {
    bytes_ -= unwritten_.size();
  }
  unwritten_.clear();
}

}  // namespace sekisho::nxproxy::client
