// SPDX-License-Identifier: Apache-2.0
// Every refusal of the relay: number on the wire, name, errno, words, remedy.
// docs/protocol/10-nxproxy.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace sekisho::nxproxy::wire {

enum class Code : uint8_t {
  kOk = 0,
  kProtocol = 1,
  kVersion = 2,
  kUnauthenticated = 3,
  kTokenInvalid = 4,
  kTokenExpired = 5,
  kTicketInvalid = 6,
  kTicketUsed = 7,
  kDenied = 8,
  kQuota = 9,
  kPortTaken = 10,
  kNoPortFree = 11,
  kNoSuchEndpoint = 12,
  kNotOwner = 13,
  kTargetRefused = 14,
  kTargetUnreachable = 15,
  kTargetTimeout = 16,
  kLoop = 17,
  kBacklogFull = 18,
  kExhausted = 19,
  kDraining = 20,
  kNoSuchStream = 21,
  kNobodyHome = 22,
  kTooSlow = 23,
  kInternal = 24,
};

struct CodeInfo {
  Code code;
  const char* name;    // stable, for logs and scripts
  int error;           // errno, what a program sees
  const char* words;   // one clause
  const char* remedy;  // what the user can do
};

std::span<const CodeInfo> AllCodes();

// What an unknown number means: kInternal's row.
const CodeInfo& Info(Code code);
std::optional<Code> CodeOfName(std::string_view name);

// Whether the relay has the endpoint no more, or not for us, if it refuses so to give it back.  All
// else may pass while it is kept there.
bool EndsEndpoint(Code code);

}  // namespace sekisho::nxproxy::wire
