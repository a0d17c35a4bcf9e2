// SPDX-License-Identifier: Apache-2.0
#include "agent/rank/pmi_client.h"

#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <set>

namespace sekisho::agent {
namespace {

constexpr size_t kChunk = 480;  // bytes of a value in a pair; in hexadecimal less than kPmiValueMax

constexpr char kDigits[] = "0123456789abcdef";

std::string ToHex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::optional<std::string> FromHex(std::string_view text) {
  const auto digit = [](char c) { return std::string_view(kDigits).find(c); };
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    const size_t high = digit(text[i]);
    const size_t low = digit(text[i + 1]);
    if (high > 15 || low > 15) {
      return std::nullopt;
    }
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

std::string ChunkKey(const std::string& key, size_t number) {
  return key + "." + std::to_string(number);
}

// What is behind "value=" in an answer that says rc=0.
std::optional<std::string> ValueOf(const std::string& answer) {
  const size_t at = answer.find("value=");
  if (answer.find(" rc=0 ") == std::string::npos || at == std::string::npos) {
    return std::nullopt;
  }
  return answer.substr(at + 6);
}

}  // namespace

bool PmiClient::Say(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(fd_, text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) {
      return false;
    }
    done += n > 0 ? static_cast<size_t>(n) : 0;
  }
  return true;
}

std::string PmiClient::Answer() {
  for (;;) {
    if (const size_t end = input_.find('\n'); end != std::string::npos) {
      std::string line = input_.substr(0, end);
      input_.erase(0, end + 1);
      return line;
    }
    char buffer[4096];
    const ssize_t n = read(fd_, buffer, sizeof buffer);
    if (n == 0 || (n < 0 && errno != EINTR)) {
      return "";
    }
    input_.append(buffer, n > 0 ? static_cast<size_t>(n) : 0);
  }
}

bool PmiClient::Init() {
  return Ask("cmd=init pmi_version=1 pmi_subversion=1").starts_with("cmd=response_to_init rc=0");
}

std::optional<PmiClient::Place> PmiClient::AskPlace() {
  Place place;
  return std::sscanf(Ask("cmd=place").c_str(), "cmd=place_result rc=0 rank=%d size=%d", &place.rank, &place.size) == 2
             ? std::optional(place)
             : std::nullopt;
}

std::optional<std::vector<int>> PmiClient::NodesOfRanks(int ranks) {
  const auto mapping = ValueOf(Ask("cmd=get kvsname=- key=PMI_process_mapping"));
  return mapping ? ParseProcessMapping(*mapping, ranks) : std::nullopt;
}

bool PmiClient::PutText(const std::string& key, const std::string& value) {
  return Ask("cmd=put kvsname=- key=" + key + " value=" + value).starts_with("cmd=put_result rc=0");
}

bool PmiClient::Put(const std::string& key, std::string_view value) {
  size_t number = 0;
  for (size_t at = 0; at <= value.size();
       at += kChunk, ++number) {  // one that is not full is the last
    if (!PutText(ChunkKey(key, number), ToHex(value.substr(at, kChunk)))) {
      return false;
    }
  }
  return true;
}

std::optional<std::string> PmiClient::Get(const std::string& key) {
  std::string value;
  for (size_t number = 0;; ++number) {
    const auto text = ValueOf(Ask("cmd=get kvsname=- key=" + ChunkKey(key, number)));
    const auto chunk = text ? FromHex(*text) : std::nullopt;
    if (!chunk) {
      return std::nullopt;
    }
    value += *chunk;
    if (chunk->size() < kChunk) {
      return value;
    }
  }
}

bool PmiClient::Barrier() { return EnterBarrier() && LeaveBarrier(); }

bool PmiClient::Finalize() { return Ask("cmd=finalize").starts_with("cmd=finalize_ack"); }

bool PmiClient::Represent() {
  return Ask("cmd=represent").starts_with("cmd=represent_result rc=0");
}

bool PmiClient::SayInside(int rank) { return Say("cmd=inside rank=" + std::to_string(rank)); }

bool PmiClient::SayOutside(int rank) {
  return Ask("cmd=outside rank=" + std::to_string(rank)).starts_with("cmd=outside_result rc=0");
}

bool PmiClient::SayLost(int rank) { return Say("cmd=lost rank=" + std::to_string(rank)); }

bool PmiClient::SayAborted(int rank, int code) {
  return Say("cmd=abort exitcode=" + std::to_string(code) + " rank=" + std::to_string(rank));
}

std::optional<std::vector<int>> ParseProcessMapping(std::string_view mapping, int ranks) {
  std::vector<int> nodes;
  const std::string text(mapping);
  for (size_t at = text.find('(', 1); at != std::string::npos; at = text.find('(', at + 1)) {
    int first = 0;
    int count = 0;
    int each = 0;
    if (std::sscanf(text.c_str() + at, "(%d,%d,%d)", &first, &count, &each) != 3 || first < 0 ||
        first >= ranks || count < 1 || each < 1 || count > ranks || each > ranks) {
      return std::nullopt;
    }
    for (int64_t i = 0; i < int64_t{count} * each && static_cast<int>(nodes.size()) <= ranks; ++i) {
      nodes.push_back(first + static_cast<int>(i / each));
    }
  }
  const std::set<int> all(nodes.begin(), nodes.end());
  const bool has_gap = all.empty() || *all.rbegin() != static_cast<int>(all.size()) - 1;
  return !has_gap && static_cast<int>(nodes.size()) == ranks ? std::optional(std::move(nodes)) : std::nullopt;
}

}  // namespace sekisho::agent
