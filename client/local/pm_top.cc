// SPDX-License-Identifier: Apache-2.0
#include "client/local/pm_top.h"

#include <charconv>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

namespace sekisho::client {
namespace {

constexpr std::string_view kMore = "more ";

// A number if it is one.
nlohmann::json Value(const std::string& word) {
  const char* end = word.data() + word.size();
  std::int64_t whole = 0;
  if (const auto [at, error] = std::from_chars(word.data(), end, whole);
      error == std::errc() && at == end) {
    return whole;
  }
  double number = 0;
  if (const auto [at, error] = std::from_chars(word.data(), end, number);
      error == std::errc() && at == end) {
    return number;
  }
  return word;
}

// Names and values in turns.
nlohmann::json Pairs(std::istringstream& words) {
  nlohmann::json object = nlohmann::json::object();
  std::string name;
  std::string value;
  while (words >> name >> value) {
    object[name] = Value(value);
  }
  return object;
}

// Of a daemon of another version there may be none.
std::string Number(const nlohmann::json& object, const char* group, const char* name) {
  const auto found = object.find(group);
  return found != object.end() && found->contains(name) ? (*found)[name].dump() : "?";
}

std::string Field(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) {
    return "-";
  }
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string PeersAsText(const nlohmann::json& peers) {
  constexpr const char* kRow =
      "{:>7} {:<9} {:>9} {:>10} {:>10} {:>6} {:>12} {:>9} {:>10} {:>6} {:>9}{}\n";
  std::string text =
      fmt::format(fmt::runtime(kRow), "peer", "state", "rtt us", "window", "in flight", "MTU",
                  "credit bytes", "messages", "granted", "by gap", "time-outs", "");
  for (const nlohmann::json& peer : peers) {
    if (peer.contains("reason")) {
      text += fmt::format("{:>7} {} ({})\n", Field(peer, "peer"), Field(peer, "state"),
                          Field(peer, "reason"));
      continue;
    }
    text +=
        fmt::format(fmt::runtime(kRow), Field(peer, "peer"), Field(peer, "state"),
                    Field(peer, "rtt_us"), Field(peer, "window"), Field(peer, "in_flight"),
                    Field(peer, "mtu"), Field(peer, "credit_bytes"), Field(peer, "credit_messages"),
                    Field(peer, "granted"), Field(peer, "lost_gap"), Field(peer, "lost_timeout"),
                    Field(peer, "policed") == "1" ? " policed" : "");
  }
  return text;
}

}  // namespace

std::optional<std::uint16_t> TakeMore(std::string& text) {
  const std::size_t at = text.rfind(kMore);
  if (at == std::string::npos || (at > 0 && text[at - 1] != '\n')) {
    return std::nullopt;
  }
  std::uint16_t next = 0;
  const char* number = text.data() + at + kMore.size();
  if (std::from_chars(number, text.data() + text.size(), next).ec != std::errc()) {
    return std::nullopt;
  }
  text.erase(at);
  return next;
}

nlohmann::json TopAsJson(const std::string& text) {
  nlohmann::json top = nlohmann::json::object();
  nlohmann::json peers = nlohmann::json::array();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    if (line.starts_with("context ")) {
      top.update(Pairs(words));
    } else if (line.starts_with("peer ")) {
      peers.push_back(Pairs(words));
    } else {
      std::string group;
      words >> group;
      top[group] = Pairs(words);
    }
  }
  for (const char* flag : {"gone", "stopped"}) {
    if (top.contains(flag)) {
      top[flag] = top[flag] == 1;
    }
  }
  top["peers"] = std::move(peers);
  return top;
}

std::string TopAsText(const nlohmann::json& top) {
  std::string text = fmt::format(
      "context {} node {} of {}: {} drives{}{}\n", Field(top, "context"), Field(top, "node"),
      Field(top, "nodes"),
      Field(top, "drives") == "program" ? fmt::format("program {}", Field(top, "program"))
                                        : "the daemon",
      top.value("gone", false) ? fmt::format(", program {} is gone", Field(top, "program")) : "",
      top.value("stopped", false) ? ", stopped" : "");
  text += fmt::format(
      "  datagrams {} in, {} out; messages {} in, {} out; datagrams through memory {} in, {} out\n",
      Number(top, "datagrams", "in"), Number(top, "datagrams", "out"),
      Number(top, "messages", "in"), Number(top, "messages", "out"), Number(top, "memory", "in"),
      Number(top, "memory", "out"));
  text += fmt::format(
      "  sent twice {}: packets lost by a gap {}, by a time-out {}; in vain {}; probes {}\n",
      Number(top, "twice", "sent"), Number(top, "twice", "gap"), Number(top, "twice", "timeout"),
      Number(top, "twice", "spurious"), Number(top, "twice", "probes"));
  text += fmt::format(
      "  the daemon took over {} times, {} of them from a program in a call; it was rung {} "
      "times\n",
      Number(top, "daemon", "turns"), Number(top, "daemon", "seizures"),
      Number(top, "daemon", "rings"));
  return top["peers"].empty() ? text : text + PeersAsText(top["peers"]);
}

nlohmann::json ListAsJson(const std::string& text) {
  nlohmann::json all = nlohmann::json::array();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    all.push_back(Pairs(words));
    all.back()["parked"] = all.back().value("parked", 0) == 1;
  }
  return all;
}

}  // namespace sekisho::client
