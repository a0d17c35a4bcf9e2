// SPDX-License-Identifier: Apache-2.0
// Endpoints that outlive the relay: a journal of lines, `+` and a reservation or `-` and its id.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/status.h"
#include "nxproxy/policy.h"
#include "nxproxy/poller.h"
#include "nxproxy/wire/message.h"

namespace sekisho::nxproxy {

struct Reservation {
  uint64_t id = 0;
  wire::Scope scope = wire::Scope::kJob;
  std::string ip;  // as which it was told to its owner
  uint16_t port = 0;
  std::string secret_hash;  // SHA-256, hexadecimal
  Caller caller;
  std::string inside;
  std::string label;
  std::string allow;
  uint32_t backlog = 0;
  bool is_encrypted = false;

  friend bool operator==(const Reservation&, const Reservation&) = default;
};

// One line without its end; Parse gives nullopt for what is none.
std::string ToLine(const Reservation& reservation);
std::optional<Reservation> ParseReservation(std::string_view line);

// What stands at the end of a journal.  A broken line is skipped: the last may be cut short.
std::map<uint64_t, Reservation> Replay(std::string_view journal);

// The file.  Appends are in the page cache when they return: they survive the relay, not the
// machine.
class Journal {
 public:
  // Reads, compacts, and opens for appending.
  absl::StatusOr<std::map<uint64_t, Reservation>> Open(const std::string& directory);
  absl::Status Add(const Reservation& reservation);
  absl::Status Remove(uint64_t id);

 private:
  absl::Status Append(const std::string& line);
  std::string path_;
  Descriptor file_;
};

}  // namespace sekisho::nxproxy
