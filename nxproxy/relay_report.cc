// SPDX-License-Identifier: Apache-2.0
// What the relay says of itself: lists for STATS and /list, figures for /metrics.
#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "nxproxy/relay_parts.h"

namespace sekisho::nxproxy {
namespace {

constexpr size_t kStreamsTold = 1000;  // one by one; the sums count all

std::vector<const Stream*> Busiest(const std::vector<Stream*>& all) {
  std::vector<std::pair<uint64_t, const Stream*>> by_bytes;  // once each: they go on counting
  by_bytes.reserve(all.size());
  for (const Stream* stream : all) {
    by_bytes.emplace_back(stream->bytes(0) + stream->bytes(1), stream);
  }
  const size_t told = std::min(by_bytes.size(), kStreamsTold);
  std::partial_sort(by_bytes.begin(), by_bytes.begin() + static_cast<ptrdiff_t>(told), by_bytes.end(),
                    std::greater<>());
  std::vector<const Stream*> out;
  for (size_t i = 0; i < told; ++i) {
    out.push_back(by_bytes[i].second);
  }
  return out;
}

}  // namespace

std::string Relay::List() const {
  uint64_t place = 0;
  return Page(nullptr, place, SIZE_MAX);
}

std::string Relay::Page(const Caller* only, uint64_t& place, size_t bytes_max) const {
  nlohmann::json rows = nlohmann::json::array();
  size_t size = 0;
  uint64_t last = place;
  place = 0;
  const auto& all = registry_.endpoints();
  for (auto at = all.upper_bound(last); at != all.end(); ++at) {
    const auto& [id, endpoint] = *at;
    const Reservation& reserved = endpoint.reserved;
    if (only != nullptr && !only->SharesWith(reserved.caller)) {
      continue;
    }
    nlohmann::json row = {
        {"endpoint", wire::JoinHostPort(reserved.ip, reserved.port)},
        {"inside", reserved.inside},
        {"scope", reserved.scope == wire::Scope::kPublic ? "public" : "job"},
        {"owner", reserved.caller.owner},
        {"job", reserved.caller.job},
        {"label", reserved.label},
        {"streams", endpoint.streams},
        {"streams_total", endpoint.streams_total},
        {"refused", endpoint.refused},
        {"bytes", endpoint.traffic->bytes_in + endpoint.traffic->bytes_out},
        {"bytes_in", endpoint.traffic->bytes_in.load()},
        {"bytes_out", endpoint.traffic->bytes_out.load()},
        {"attached", endpoint.session != 0 && doors_.count(endpoint.session) != 0 &&
                         doors_.at(endpoint.session).client != nullptr}};
    size += row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).size();
    if (size > bytes_max) {
      place = last;
      break;
    }
    last = id;
    rows.push_back(std::move(row));
  }
  return nlohmann::json({{"site", config_.site()}, {"endpoints", rows}, {"whole", place == 0}})
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string Relay::Metrics() const {
  std::string out;
  const auto gauge = [&out](const char* name, const char* kind, auto value) {
    out += fmt::format("# TYPE sekisho_nxproxy_{} {}\nsekisho_nxproxy_{} {}\n", name, kind, name,
                       value);
  };
  size_t waiting = 0;
  for (const auto& [endpoint, queue] : waiting_) {
    waiting += queue.size();
  }
  size_t spares = 0;
  for (const auto& [session, doors] : doors_) {
    spares += doors.spares.size();
  }
  gauge("streams", "gauge", streams_.size());
  gauge("streams_total", "counter", streams_total_);
  gauge("sessions", "gauge", registry_.session_count());
  gauge("endpoints", "gauge", registry_.endpoints().size());
  gauge("waiting_peers", "gauge", waiting);
  gauge("spares", "gauge", spares);
  gauge("tls_handshakes_total", "counter", handshakes_);
  const auto quoted = [](const std::string& text) {
    std::string safe;
    for (const char c : text) {
      if (c == '"' || c == '\\') {
        safe += '\\';
      }
      safe += c == '\n' ? ' ' : c;
    }
    return safe;
  };
  for (const auto& [owner, account] : registry_.accounts()) {
    out += fmt::format(
        "sekisho_nxproxy_identity_streams{{owner=\"{0}\"}} {1}\n"
        "sekisho_nxproxy_identity_bytes_total{{owner=\"{0}\"}} {2}\n",
        quoted(owner), account.streams, account.traffic->bytes_in + account.traffic->bytes_out);
  }
  for (const auto& [id, endpoint] : registry_.endpoints()) {
    out += fmt::format(
        "sekisho_nxproxy_endpoint_streams{{port=\"{0}\"}} {1}\n"
        "sekisho_nxproxy_endpoint_bytes_total{{port=\"{0}\"}} {2}\n",
        endpoint.reserved.port, endpoint.streams,
        endpoint.traffic->bytes_in + endpoint.traffic->bytes_out);
  }
  for (const Stream* stream : Busiest(streams_)) {
    const auto endpoint = registry_.endpoints().find(stream->endpoint);
    out += fmt::format(
        "sekisho_nxproxy_stream_bytes_total{{stream=\"{}\",port=\"{}\",owner=\"{}\"}} {}\n", stream->id,
        endpoint != registry_.endpoints().end() ? endpoint->second.reserved.port : 0,
        stream->owner_traffic != nullptr ? quoted(stream->owner_traffic->owner) : "",
        stream->bytes(0) + stream->bytes(1));
  }
  for (const auto& [name, count] : refusals_.counts()) {
    out += fmt::format("sekisho_nxproxy_refused_total{{reason=\"{}\"}} {}\n", name, count);
  }
  return out;
}

}  // namespace sekisho::nxproxy
