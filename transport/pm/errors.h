// SPDX-License-Identifier: Apache-2.0
// The errors a caller of PM can meet.  This folder is loaded into users' processes:
// std::error_code, no exceptions.
#pragma once

#include <system_error>

namespace sekisho::pm {

enum class Error {
  kWouldBlock = 1,  // no room now; go on receiving and try again
  kBadNode,         // not in 0..n-1, or ourselves
  kBadChannel,      // not below the number of channels
  kTooLong,         // longer than a whole message may be; use pieces
  kPeerGone,        // see Endpoint::peer_reason
  kBadSequence,     // Release without Receive, Append without Begin ...
  kBadConfig,       // a limit of the configuration is broken
  kNoMemory,        // the memory block is too small for the configuration
  kRefused,         // the peer has no such memory for us
};

const std::error_category& ErrorCategory();

inline std::error_code make_error_code(Error error) {
  return {static_cast<int>(error), ErrorCategory()};
}

}  // namespace sekisho::pm

template <>
struct std::is_error_code_enum<sekisho::pm::Error> : std::true_type {};
