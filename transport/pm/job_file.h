// SPDX-License-Identifier: Apache-2.0
// The file that names the nodes of a job: docs/operations/pm.md.
#pragma once

#include <sys/types.h>

#include <array>
#include <memory>
#include <system_error>

#include "transport/pm/types.h"

namespace sekisho::pm {

struct JobFile {
  std::uint16_t context = 0;
  std::uint16_t channels = 1;
  std::uint16_t nodes = 0;
  bool payload_tag = true;
  JobKey key{};
  std::unique_ptr<char[]> key_path;
  std::unique_ptr<Address[]> addresses;  // of each node
};

// `line` gets the number of the line that is wrong, 0 if it is none.
std::error_code ReadJobFile(const char* path, JobFile& job, int& line);
// For a job that had no file: the key in PATH.key, for its owner alone, and then what ReadJobFile
// reads.  The path is absolute and without blanks; EEXIST: PATH.key is there, and no key of ours.
std::error_code WriteJobKey(const char* path, const JobKey& key);
std::error_code WriteJobFile(const char* path, const JobFile& job);

// As ParseAddress takes it.
using AddressText = std::array<char, 56>;
AddressText FormatAddress(const Address& address);

// 32 bytes from a file that belongs to us and that nobody else may read.
std::error_code ReadKeyFile(const char* path, JobKey& key);
// The same of an open file that must belong to `owner`.
std::error_code ReadKeyFile(int fd, uid_t owner, JobKey& key);

}  // namespace sekisho::pm
