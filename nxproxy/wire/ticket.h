// SPDX-License-Identifier: Apache-2.0
// Tickets: a data connection's preface, tagged with its session's key. docs/protocol/10-nxproxy.md.
#pragma once

#include <string>
#include <string_view>

#include "nxproxy/wire/preface.h"

namespace sekisho::nxproxy::wire {

// The preface's bytes, tag and all: what the client writes first.  "" if the target is too long.
std::string Seal(const Preface& preface, std::string_view session_key);

// In constant time.
bool IsSealedWith(const TaggedPreface& preface, std::string_view session_key);

}  // namespace sekisho::nxproxy::wire
