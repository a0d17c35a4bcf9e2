// SPDX-License-Identifier: Apache-2.0
// Every error of topology that a user can meet.
#pragma once

#include <string_view>

#include <fmt/format.h>

#include "common/status.h"

namespace sekisho::topology::errors {

inline absl::Status BadLine(std::string_view source, size_t line, std::string_view expected) {
  return absl::InvalidArgumentError(fmt::format("{}:{}: expected {}", source, line, expected));
}

inline absl::Status BadFile(std::string_view source, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", source, what));
}

inline absl::Status NotOneTree(std::string_view source, size_t line, std::string_view why) {
  return absl::InvalidArgumentError(
      fmt::format("{}:{}: the lines are not one tree: {}", source, line, why));
}

inline absl::Status HostCount(size_t named, long told) {
  return absl::InvalidArgumentError(
      fmt::format("the hosts file names {} hosts, the oracle says {}", named, told));
}

inline absl::Status OracleEnded(long answers, std::string_view how) {
  return absl::UnavailableError(fmt::format("the oracle {} after {} answers", how, answers));
}

inline absl::Status OracleSilent(long answers, int seconds) {
  return absl::DeadlineExceededError(
      fmt::format("the oracle did not answer for {} s, after {} answers", seconds, answers));
}

inline absl::Status OracleTalksNonsense(long answers, std::string_view line) {
  return absl::DataLossError(
      fmt::format("after {} answers the oracle said \"{}\" where \"min lo hi pings duration\" was "
                  "expected, as it did too often",
                  answers, line.substr(0, 80)));
}

inline absl::Status OracleSaysMore(long answers, std::string_view line) {
  return absl::DataLossError(fmt::format(
      "after {} answers the oracle said \"{}\" where nothing was asked: a line for each question",
      answers, line.substr(0, line.find('\n')).substr(0, 80)));
}

inline absl::Status NothingAnswered() {
  return absl::UnavailableError("no host answered another: there is no tree");
}

inline absl::Status NoSource() {
  return absl::InvalidArgumentError(
      "expected one of --hosts FILE (a prober on every host, by ssh or by --launch 'CMD'), -r SITE "
      "or --job JOB (probers as jobs), and --oracle 'CMD' with --hosts FILE");
}

inline absl::Status NoHosts() {
  return absl::InvalidArgumentError("--hosts FILE is missing: a host a line, NAME [SITE]");
}

inline absl::Status NodesOfSites() {
  return absl::InvalidArgumentError(
      "-r SITE takes no --hosts, which the site knows; several sites, each once, have one --nodes "
      "for all, or one each in their order, or none: all nodes");
}

inline absl::Status NoNodes(std::string_view site, std::string_view said) {
  return absl::UnavailableError(
      fmt::format("-r {}: expected a site with nodes that are up, `sekisho sites --json` said "
                  "\"{}\"",
                  site, said.substr(0, 200)));
}

inline absl::Status OneSiteOnly(std::string_view what) {
  return absl::InvalidArgumentError(
      fmt::format("{} knows nothing of relays: infer several sites by the method fast", what));
}

inline absl::Status NoJobNodes(std::string_view job, std::string_view said) {
  return absl::UnavailableError(
      fmt::format("--job {}: expected a job that has nodes, `sekisho status --json` said \"{}\"",
                  job, said.substr(0, 80)));
}

inline absl::Status OracleCannot() {
  return absl::InvalidArgumentError(
      "an oracle carries nothing: expected --launch 'CMD', -r SITE or --job JOB");
}

inline absl::Status BadPath(std::string_view path) {
  return absl::InvalidArgumentError(
      fmt::format("\"{}\": a path with a line's end cannot be told to a prober", path));
}

inline absl::Status NoSuchHost(std::string_view name) {
  return absl::InvalidArgumentError(fmt::format("--from {}: no host is called so", name));
}

inline absl::Status NotEverywhere(size_t good, size_t all) {
  return absl::UnavailableError(
      fmt::format("only {} of {} hosts have the file; the others are named above", good, all));
}

inline absl::Status NoProber(std::string_view host, std::string_view why) {
  return absl::UnavailableError(fmt::format("no prober is ready; {}: {}", host, why));
}

inline absl::Status UnknownMethod(std::string_view name) {
  return absl::InvalidArgumentError(
      fmt::format("method '{}' is not known: expected fast or paper", name));
}

inline absl::Status UnknownMatrixMethod(std::string_view name) {
  return absl::InvalidArgumentError(
      fmt::format("method '{}' is not known: expected tree or alpha", name));
}

inline absl::Status UnknownNoise(std::string_view name) {
  return absl::InvalidArgumentError(
      fmt::format("noise '{}' is not known: expected quiet, lab or exact", name));
}

}  // namespace sekisho::topology::errors
