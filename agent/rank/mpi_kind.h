// SPDX-License-Identifier: Apache-2.0
// Which MPI a program was built with, by the libraries that its ELF image names itself:
// docs/protocol/15-mpirun.md, "Which MPI".  Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sekisho::agent {

enum class MpiKind { kUnknown, kMpich, kOpenMpi };

// "" for kUnknown.
std::string_view Name(MpiKind kind);

// DT_NEEDED of a 64-bit little-endian image; nothing of what is no such image, or is cut off.
std::vector<std::string> NeededLibraries(std::string_view image);

// Unknown: a script, a static program, or one that gets its MPI from a library of its own.
MpiKind KindOf(const std::vector<std::string>& libraries);

}  // namespace sekisho::agent
