// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/proc_net.h"

#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>

namespace sekisho::nxproxy::client {
namespace {

constexpr unsigned kStateListen = 10;

template <typename Number>
std::optional<Number> ParseNumber(std::string_view text, int base) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

// "0100007F:1F90": words of four bytes in the machine's order.
std::optional<wire::Address> ParseEnd(std::string_view text) {
  const size_t digits = text.find(':');
  if (digits != 8 && digits != 32) {
    return std::nullopt;
  }
  wire::Address out;
  out.ip[10] = out.ip[11] = 0xff;
  size_t offset = digits == 8 ? 12 : 0;
  for (size_t i = 0; i < digits; i += 8, offset += 4) {
    const auto word = ParseNumber<uint32_t>(text.substr(i, 8), 16);
    if (!word) {
      return std::nullopt;
    }
    std::memcpy(out.ip.data() + offset, &*word, 4);
  }
  const auto port = ParseNumber<uint16_t>(text.substr(digits + 1), 16);
  if (!port) {
    return std::nullopt;
  }
  out.port = *port;
  return out;
}

std::string_view NextWord(std::string_view& line) {
  const size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const size_t end = std::min(line.find(' ', begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

void ParseLine(std::string_view line, TcpTable& out) {
  NextWord(line);
  const auto local = ParseEnd(NextWord(line));
  const auto remote = ParseEnd(NextWord(line));
  const auto state = ParseNumber<unsigned>(NextWord(line), 16);
  for (int skipped = 0; skipped < 5; ++skipped) {
    NextWord(line);
  }
  const auto inode = ParseNumber<uint64_t>(NextWord(line), 10);
  if (!local || !remote || !state || !inode) {
    return;
  }
  if (*state == kStateListen) {
    out.listening.insert(*inode);
    out.listening_ports.insert(local->port);
  } else {
    out.connections.insert({*local, *remote});
  }
}

void ReadInto(const char* path, TcpTable& out) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ParseTcp(text, out);
}

}  // namespace

bool PairLess::operator()(const Pair& one, const Pair& other) const {
  return std::tie(one.first.ip, one.first.port, one.second.ip, one.second.port) <
         std::tie(other.first.ip, other.first.port, other.second.ip, other.second.port);
}

void ParseTcp(std::string_view text, TcpTable& out) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    ParseLine(text.substr(0, end), out);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

TcpTable ReadTcpTable() {
  TcpTable table;
  ReadInto("/proc/self/net/tcp", table);
  ReadInto("/proc/self/net/tcp6", table);
  return table;
}

}  // namespace sekisho::nxproxy::client
