// SPDX-License-Identifier: Apache-2.0
// Endpoints that outlive the relay: a journal of lines, `+` and a reservation or `-` and its id.
#pragma once

#include <cstddef>
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
  // It is rewritten when it is longer than that and than twice what stands.
  static constexpr size_t kRewriteAboveBytes = 1 << 20;

  // Reads, rewrites, and opens for appending.  A file that cannot be read is refused and left
  // alone; one that cannot be rewritten stays in use.
  absl::StatusOr<std::map<uint64_t, Reservation>> Open(const std::string& directory);
  // All of an entry is written, or nothing.
  absl::Status Add(const Reservation& reservation);
  absl::Status Remove(uint64_t id);

 private:
  void Keep(uint64_t id, std::string line);
  void Drop(uint64_t id);
  absl::Status Append(const std::string& line);
  absl::Status Rewrite();
  void RewriteIfLong();

  std::string directory_;
  std::string path_;
  Descriptor file_;
  size_t bytes_ = 0;                          // of the file's whole entries
  bool is_torn_ = false;                      // half an entry stands behind them
  std::map<uint64_t, std::string> standing_;  // lines, with their ends
  size_t standing_bytes_ = 0;
  size_t due_bytes_ = 0;  // after a rewriting that failed: the length at which it is tried again
};

}  // namespace sekisho::nxproxy
