// SPDX-License-Identifier: Apache-2.0
// What PM's errors say.
#include "transport/pm/errors.h"

#include <string>

namespace sekisho::pm {
namespace {

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "pm"; }

  std::string message(int code) const override {
    switch (static_cast<Error>(code)) {
      case Error::kWouldBlock:
        return "no room in the send buffer now";
      case Error::kBadNode:
        return "no such node in this job, or the own one";
      case Error::kBadChannel:
        return "no such channel";
      case Error::kTooLong:
        return "message longer than the send buffer takes at once";
      case Error::kPeerGone:
        return "the peer is gone";
      case Error::kBadSequence:
        return "call out of sequence";
      case Error::kBadConfig:
        return "configuration out of its limits";
      case Error::kNoMemory:
        return "memory block too small for the configuration";
      case Error::kRefused:
        return "the peer has no such memory for us";
    }
    return "unknown error";
  }

  std::error_condition default_error_condition(int code) const noexcept override {
    switch (static_cast<Error>(code)) {
      case Error::kWouldBlock:
        return std::errc::no_buffer_space;
      case Error::kTooLong:
        return std::errc::message_size;
      case Error::kPeerGone:
        return std::errc::broken_pipe;
      case Error::kNoMemory:
        return std::errc::not_enough_memory;
      case Error::kRefused:
        return std::errc::permission_denied;
      default:
        return std::errc::invalid_argument;
    }
  }
};

}  // namespace

const std::error_category& ErrorCategory() {
  static const Category category;
  return category;
}

}  // namespace sekisho::pm
