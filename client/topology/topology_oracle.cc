// SPDX-License-Identifier: Apache-2.0
#include "client/topology/topology_oracle.h"

#include <cerrno>
#include <charconv>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "topology/errors.h"
#include "topology/text_format.h"

namespace sekisho::client {
namespace {

constexpr size_t kLongestLine = 4096;
constexpr double kLostUs = 1e6;

}  // namespace

absl::StatusOr<std::string> TopologyOracle::Ask(const std::string& line) {
  // One that says more than it is asked answers something else from then on, and in the end each
  // side waits for the other to read.
  if (!buffer_.empty()) {
    return topology::errors::OracleSaysMore(answers_, buffer_);
  }
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t count =
        send(child_.socket(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return topology::errors::OracleEnded(answers_, child_.HowItEnded());
    }
    sent += static_cast<size_t>(count);
  }
  for (;;) {
    const size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      std::string answer = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return answer;
    }
    if (buffer_.size() > kLongestLine) {
      return topology::errors::OracleTalksNonsense(answers_, buffer_);
    }
    pollfd wait{.fd = child_.socket(), .events = POLLIN, .revents = 0};
    const int ready = poll(&wait, 1, timeout_s_ * 1000);
    if (ready < 0 && errno == EINTR) {
      continue;
    }
    if (ready <= 0) {
      return topology::errors::OracleSilent(answers_, timeout_s_);
    }
    char bytes[4096];
    const ssize_t count = read(child_.socket(), bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return topology::errors::OracleEnded(answers_, child_.HowItEnded());
    }
    buffer_.append(bytes, static_cast<size_t>(count));
  }
}

absl::StatusOr<long> TopologyOracle::HostCount() {
  ASSIGN_OR_RETURN(const std::string answer, Ask("N\n"));
  long count = 0;
  const auto [end, error] = std::from_chars(answer.data(), answer.data() + answer.size(), count);
  if (error != std::errc() || count < 0 || std::string_view(end).find_first_not_of(" \r") == 0) {
    return absl::DataLossError(fmt::format(
        "the oracle said \"{}\" where the number of hosts was expected", answer.substr(0, 80)));
  }
  return count;
}

absl::StatusOr<topology::Answer> TopologyOracle::Measure(const topology::Request& request,
                                                         double start_us) {
  ASSIGN_OR_RETURN(const std::string line, Ask(topology::PrintRequest(request, start_us)));
  ++answers_;
  const std::optional<topology::Answer> answer = topology::ParseAnswer(line, request);
  if (answer) {
    return *answer;
  }
  // Now and then counts as no answer; as a habit it is not an oracle.
  if (++nonsense_ > 50 && nonsense_ > answers_ / 4) {
    return topology::errors::OracleTalksNonsense(answers_, line);
  }
  return topology::Answer{.duration_us = kLostUs};
}

}  // namespace sekisho::client
