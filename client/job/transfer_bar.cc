// SPDX-License-Identifier: Apache-2.0
#include "client/job/transfer_bar.h"

namespace sekisho::client {
namespace {

constexpr double kMoment = 0.5;

}  // namespace

void TransferBar::Reach(const std::string& file, uint64_t at, uint64_t size) {
  const double now = MonotonicSeconds();
  began_ = began_.value_or(now);
  transfers_.Reach(file, at, size);
  if (transfers_.IsComplete()) {
    line_.Close();
  } else if (line_.IsDue() && now - *began_ >= kMoment) {
    line_.Show(transfers_.Text(now - *began_, TerminalLine::Columns() - 1));
  }
}

}  // namespace sekisho::client
