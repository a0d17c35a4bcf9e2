// SPDX-License-Identifier: Apache-2.0
// Records of a task on disk: `key=value` fields, each ended by a NUL byte, so that values may hold
// anything but NUL.  Written whole or not at all.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sekisho::agent::task {

using Fields = std::vector<std::pair<std::string, std::string>>;

std::string Encode(const Fields& fields);

// Nothing if a field has no key or is cut off.
std::optional<Fields> Decode(std::string_view bytes);

// The first value of `key`, or empty.
std::string_view Get(const Fields& fields, std::string_view key);
std::optional<long long> GetNumber(const Fields& fields, std::string_view key);

// Files are named relative to the directory `dir_fd`.  False with errno set.
bool ReadFile(int dir_fd, const char* name, std::string& content);

enum class Durability { kProcess, kMachine };  // what must not lose it: our death, or the machine's

inline constexpr size_t kRecordBytesMost = 4096;  // of a task's start, and of its end

// Makes room for a file of at most `bytes` that WriteFile will write later, whatever fills the disk meanwhile.
bool ReserveFile(int dir_fd, const char* name, size_t bytes);

// Appears under its name only when complete.
bool WriteFile(int dir_fd, const char* name, std::string_view content, Durability durability);

// What was written for kProcess, for kMachine.
bool SyncFile(int dir_fd, const char* name);

}  // namespace sekisho::agent::task
