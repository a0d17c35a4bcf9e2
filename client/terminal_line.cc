// SPDX-License-Identifier: Apache-2.0
#include "client/terminal_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace sekisho::client {
namespace {

constexpr double kSecondsToRead = 0.2;
constexpr int kUsualColumns = 80;

}  // namespace

double MonotonicSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string Bar(double part_done, int width) {
  const int full = static_cast<int>(width * std::clamp(part_done, 0.0, 1.0));
  return fmt::format("[{}{}]", std::string(full, '#'), std::string(width - full, '-'));
}

TerminalLine::TerminalLine(bool is_wanted) : is_shown_(is_wanted && isatty(STDERR_FILENO) == 1) {}

bool TerminalLine::IsDue() const { return is_shown_ && MonotonicSeconds() - shown_at_ >= kSecondsToRead; }

void TerminalLine::Show(const std::string& text) {
  if (!is_shown_) {
    return;
  }
  fmt::print(stderr, "\r{}\033[K\r", text);
  std::fflush(stderr);
  is_open_ = true;
  shown_at_ = MonotonicSeconds();
}

void TerminalLine::Close() {
  if (is_open_) {
    fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
    is_open_ = false;
  }
}

int TerminalLine::Columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

}  // namespace sekisho::client
