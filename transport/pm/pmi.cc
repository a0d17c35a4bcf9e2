// SPDX-License-Identifier: Apache-2.0
// Lines of words "name=value", one for each question and one for its answer.
#include "transport/pm/pmi.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "transport/pm/errors.h"
#include "transport/pm/number.h"
#include "transport/pm/wire.h"

namespace sekisho::pm {
namespace {

constexpr int kMost = 65535;

std::error_code LastError() { return {errno, std::generic_category()}; }

bool ReadVariable(const char* name, unsigned long least, int most, int& value) {
  unsigned long number;
  if (!ReadNumber(getenv(name), least, static_cast<unsigned long>(most), number)) return false;
  value = static_cast<int>(number);
  return true;
}

}  // namespace

std::string_view PmiValue(std::string_view line, std::string_view name) {
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(word.size() + 1, line.size()));
    if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=') {
      return word.substr(name.size() + 1);
    }
  }
  return {};
}

std::error_code Pmi::Open() {
  if (!ReadVariable("PMI_FD", 0, kMost, fd_) || !ReadVariable("PMI_SIZE", 1, kMost, size_) ||
      !ReadVariable("PMI_RANK", 0, size_ - 1, rank_)) {
    return Error::kBadConfig;
  }
  // Who has said farewell to it may have another file by that number.
  int family = 0;
  socklen_t size = sizeof family;
  if (getsockopt(fd_, SOL_SOCKET, SO_DOMAIN, &family, &size) != 0 || family != AF_UNIX) {
    return Error::kBadConfig;
  }
  if (const auto error = Ask("my_kvsname", "cmd=get_my_kvsname\n")) return error;
  const std::string_view name = PmiValue(line_, "kvsname");
  if (name.empty() || name.size() >= space_.size()) {
    return std::make_error_code(std::errc::protocol_error);
  }
  std::copy(name.begin(), name.end(), space_.begin());
  space_[name.size()] = 0;
  return {};
}

std::error_code Pmi::Put(const char* key, const char* value) {
  return Ask("put_result", "cmd=put kvsname=%s key=%s value=%s\n", space_.data(), key, value);
}

std::error_code Pmi::Barrier() { return Ask("barrier_out", "cmd=barrier_in\n"); }

std::error_code Pmi::Finalize() { return Ask("finalize_ack", "cmd=finalize\n"); }

std::error_code Pmi::Get(const char* key, std::span<char> value) {
  if (const auto error = Ask("get_result", "cmd=get kvsname=%s key=%s\n", space_.data(), key)) {
    return error;
  }
  const std::string_view got = PmiValue(line_, "value");
  if (got.empty() || got.size() >= value.size()) {
    return std::make_error_code(std::errc::protocol_error);
  }
  std::copy(got.begin(), got.end(), value.begin());
  value[got.size()] = 0;
  return {};
}

std::error_code Pmi::Ask(std::string_view answer, const char* format, ...) {
  std::array<char, kLineMax> question;
  va_list values;
  va_start(values, format);
  const int length = vsnprintf(question.data(), question.size(), format, values);
  va_end(values);
  if (length < 0 || static_cast<std::size_t>(length) >= question.size()) return Error::kTooLong;
  auto error = Exchange({question.data(), static_cast<std::size_t>(length)});
  if (!error && PmiValue(line_, "cmd") != answer) {
    error = std::make_error_code(std::errc::protocol_error);
  }
  if (error) {
    fd_ = -1;  // what comes later would be taken for the next answer
    return error;
  }
  const std::string_view code = PmiValue(line_, "rc");
  const bool is_good = code.empty() || code == "0";
  return is_good ? std::error_code() : std::make_error_code(std::errc::no_such_file_or_directory);
}

std::error_code Pmi::Exchange(std::string_view question) {
  while (!question.empty()) {
    const ssize_t sent = send(fd_, question.data(), question.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return LastError();
    if (sent > 0) question.remove_prefix(static_cast<std::size_t>(sent));
  }
  return Read();
}

// One answer, and nothing behind it: nobody says what was not asked for.
std::error_code Pmi::Read() {
  const Nanos limit = Wire::Now() + patience_;
  for (std::size_t got = 0;;) {
    const Nanos left = limit - Wire::Now();
    if (left <= 0) return std::make_error_code(std::errc::timed_out);
    pollfd waiting = {fd_, POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(left / kMillisecond) + 1) <= 0) continue;
    const ssize_t count = recv(fd_, text_.data() + got, text_.size() - got, MSG_DONTWAIT);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return LastError();
    if (count == 0) return std::make_error_code(std::errc::connection_reset);
    got += static_cast<std::size_t>(count);
    if (text_[got - 1] == '\n') {
      line_ = {text_.data(), got - 1};
      const bool is_one = line_.find('\n') == line_.npos;
      return is_one ? std::error_code() : std::make_error_code(std::errc::protocol_error);
    }
    if (got == text_.size()) return std::make_error_code(std::errc::protocol_error);
  }
}

}  // namespace sekisho::pm
