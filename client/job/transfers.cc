// SPDX-License-Identifier: Apache-2.0
#include "client/job/transfers.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "client/site/harmless.h"
#include "client/terminal_line.h"

namespace sekisho::client {
namespace {

constexpr int kBarWidth = 10;  // so that all the rest has room beside it on 80 columns

std::string Bytes(double bytes) {
  if (bytes < 1024) {
    return fmt::format("{:.0f} B", bytes);
  }
  for (const char* const unit : {"KiB", "MiB", "GiB"}) {
    bytes /= 1024;
    if (bytes < 1024) {
      return fmt::format("{:.1f} {}", bytes, unit);
    }
  }
  return fmt::format("{:.1f} TiB", bytes / 1024);
}

std::string Time(double seconds) {
  const auto whole = static_cast<uint64_t>(std::ceil(seconds));
  return whole < 60     ? fmt::format("{} s", whole)
         : whole < 3600 ? fmt::format("{} min {} s", whole / 60, whole % 60)
                        : fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

// At most so many bytes of it, and no part of a character.
std::string Front(const std::string& text, size_t most) {
  size_t end = std::min(text.size(), most);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) {
    --end;
  }
  return text.substr(0, end);
}

}  // namespace

void Transfers::Reach(const std::string& file, uint64_t at, uint64_t size) {
  at = std::min(at, size);
  const auto [place, is_new] = files_.try_emplace(file, File{at, at, size});
  File& one = place->second;
  if (!is_new) {
    done_ -= one.at;
    size_ -= one.size;
    moved_ -= one.at - one.began;
    complete_ -= one.at == one.size ? 1 : 0;
    one = {std::min(one.began, at), at, size};
  }
  done_ += at;
  size_ += size;
  moved_ += at - one.began;
  complete_ += at == size ? 1 : 0;
}

std::string Transfers::Text(double seconds, int columns) const {
  const double part = size_ > 0 ? double(done_) / double(size_) : 1;
  const double rate = seconds > 0 ? double(moved_) / seconds : 0;
  std::string rest = fmt::format("  {}  {:.0f} %  {} of {}", Bar(part, kBarWidth), std::floor(100 * part), Bytes(double(done_)),
                                 Bytes(double(size_)));
  if (rate >= 1) {
    rest += fmt::format("  {}/s  {} left", Bytes(rate), Time(double(size_ - done_) / rate));
  }
  std::string what = fmt::format("{} of {} files", complete_, files_.size());
  if (files_.size() == 1) {
    const std::string& path = files_.begin()->first;
    what = Harmless(path.substr(path.rfind('/') + 1));
  }
  const size_t room = size_t(std::max(columns, 0));
  return Front(Front(what, room > rest.size() ? room - rest.size() : 0) + rest, room);
}

}  // namespace sekisho::client
