// SPDX-License-Identifier: Apache-2.0
// Every attribute of a job by name: docs/protocol/1-rsl.md, "Attributes".  What its value means is
// in job_description.h.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sekisho::rsl {

struct Attribute {
  enum class Group {
    kGram,  // GRAM5's own
    kLrm,   // what GRAM5 adds for one batch system
    kPart,  // of a part of a multi-request
    kOurs,  // Sekisho's
  };
  enum class Support {
    kYes,
    kLater,  // understood and checked, refused as "not supported yet"
    kNever,  // understood, refused
  };

  std::string_view name;  // documented spelling
  Group group;
  unsigned valid;  // of kSubmit, kRestart, kUpdate, kInPart
  Support support;
  int malformed;                 // GRAM number for a value of the wrong shape
  int invalid;                   // GRAM number for a value that is no good
  std::string_view reason = "";  // why it is not supported
};

// When an attribute may be given.
inline constexpr unsigned kSubmit = 1;   // a new job
inline constexpr unsigned kRestart = 2;  // a request with `restart`
inline constexpr unsigned kUpdate = 4;   // the argument of the stdio update signal
inline constexpr unsigned kInPart = 8;   // in a part of a multi-request only

std::span<const Attribute> Attributes();

// By any spelling; null if there is none.
const Attribute* FindAttribute(std::string_view name);

// The documented spelling nearest to `name`; empty if nothing is near.
std::string_view NearestAttribute(std::string_view name);

}  // namespace sekisho::rsl
