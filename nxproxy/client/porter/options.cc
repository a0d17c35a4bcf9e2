// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/options.h"

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

namespace sekisho::nxproxy::client {
namespace {

constexpr size_t kLabelMax = 64;
constexpr size_t kServersMax = 4;  // as many as $NXPROXY_PORTER names

std::optional<uint16_t> ParsePort(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return port;
}

// "5201" or "LOCAL:PUBLIC".
std::string ParsePlan(const std::string& text, BindPlan& plan) {
  const size_t colon = text.find(':');
  const auto last =
      ParsePort(std::string_view(text).substr(colon == std::string::npos ? 0 : colon + 1));
  const auto local =
      colon == std::string::npos ? last : ParsePort(std::string_view(text).substr(0, colon));
  if (!last || !local) {
    return "--port: expected PORT or LOCAL:PUBLIC, not '" + text + "'";
  }
  if (colon == std::string::npos) {
    plan.first_port = *last;
  } else {
    plan.ports[*local] = *last;
  }
  return "";
}

std::string ParseScope(const std::string& text, BindPlan& plan) {
  if (text != "job" && text != "public") {
    return "--scope: expected job or public, not '" + text + "'";
  }
  plan.scope = text == "public" ? wire::Scope::kPublic : wire::Scope::kJob;
  return "";
}

std::string LabelOf(const Options& options) {
  if (const char* named = getenv("NXPROXY_LABEL"); named != nullptr && *named != 0) {
    return std::string(named).substr(0, kLabelMax);
  }
  std::string label = options.command.empty() ? options.verb : options.command.front();
  label.erase(0, label.rfind('/') + 1);
  return label.substr(0, kLabelMax);
}

}  // namespace

std::string ServerText(const std::string& given) {
  const char* named = getenv("NXPROXY_SERVER");
  std::string text = given.empty() && named != nullptr ? named : given;
  if (text.empty()) {
    std::ifstream file("/etc/sekisho/nxproxy-server");
    file >> text;
  }
  return text;
}

std::string TargetText(const std::string& given) {
  const size_t colon = given.rfind(':');
  if (colon == std::string::npos) {
    return given;
  }
  std::string job = given.substr(0, colon);
  while (job.ends_with('/')) {
    job.pop_back();
  }
  const size_t slash = job.rfind('/');
  return slash == std::string::npos ? given : job.substr(slash + 1) + given.substr(colon);
}

std::string SiteText() {
  if (const char* named = getenv("NXPROXY_SITE"); named != nullptr) {
    return named;
  }
  std::ifstream file("/etc/sekisho/nxproxy-server");
  std::string server;
  std::string site;
  file >> server >> site;
  return site;
}

std::string ParseOptions(const std::vector<std::string>& words, Options& out) {
  out = Options{};
  std::string server;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool has_value = word == "--scope" || word == "--port" || word == "--server";
    if (has_value && i + 1 == words.size()) {
      return word + ": expected a value";
    }
    if (word == "--") {
      out.command.assign(words.begin() + static_cast<ptrdiff_t>(i) + 1, words.end());
      break;
    }
    std::string error;
    if (word == "--scope") {
      error = ParseScope(words[++i], out.plan);
    } else if (word == "--port") {
      error = ParsePlan(words[++i], out.plan);
    } else if (word == "--server") {
      server = words[++i];
    } else if (word == "--advertise") {
      out.is_advertising = true;
    } else if (word == "--encrypt") {
      out.plan.is_encrypted = true;
    } else if (word == "--loopback") {
      out.takes_loopback = true;
    } else if (word.starts_with("--")) {
      error = "unknown option " + word;
    } else if (out.verb.empty()) {
      out.verb = word;
    } else {
      out.words.push_back(word);
    }
    if (!error.empty()) {
      return error;
    }
  }
  if (const char* wish = getenv("NXPROXY_ENCRYPT"); wish != nullptr && std::string_view(wish) == "1") {
    out.plan.is_encrypted = true;
  }
  if (out.plan.is_encrypted && out.plan.scope == wire::Scope::kPublic) {
    return "--encrypt is for --scope job: who connects to a public endpoint knows nothing of it";
  }
  const std::string text = ServerText(server);
  std::istringstream places(text);
  for (std::string place; std::getline(places, place, ',');) {
    const auto parsed = wire::ParseHostPort(place);
    if (!parsed) {
      return "the relay's address: expected HOST:PORT, not '" + place + "'";
    }
    out.servers.push_back(*parsed);
  }
  if (out.servers.empty() || out.servers.size() > kServersMax) {
    return text.empty() ? "which relay? set NXPROXY_SERVER=HOST:PORT, or write it to "
                          "/etc/sekisho/nxproxy-server"
                        : "at most 4 relays, not '" + text + "'";
  }
  out.plan.site = SiteText();
  if (const char* direct = getenv("NXPROXY_DIRECT"); direct != nullptr) {
    out.plan.direct = direct;
  }
  if (const char* wish = getenv("NXPROXY_REVERSE"); wish != nullptr && *wish != 0) {
    out.plan.is_inviting = std::string_view(wish) != "0";
  }
  if (const char* links = getenv("NXPROXY_LINKS"); links != nullptr) {
    out.plan.links = links;
  }
  out.plan.label = LabelOf(out);
  const char* unreached = getenv("NXPROXY_UNREACHED");
  out.plan.ends_unreached = unreached != nullptr && std::string_view(unreached) == "end";
  out.plan.is_quiet = out.verb == "serve" || getenv("NXPROXY_QUIET") != nullptr;
  return "";
}

}  // namespace sekisho::nxproxy::client
