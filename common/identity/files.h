// SPDX-License-Identifier: Apache-2.0
// Small files that hold identities, read whole.
#pragma once

#include <string>

#include <sys/types.h>

#include "common/status.h"

namespace sekisho::identity {

inline constexpr size_t kIdentityFileBytesMax = 64 * 1024 * 1024;  // large authorities' CRLs

enum class Secrecy {
  kPublic,
  kPrivate,  // a regular file of ours (or root's) that group and others cannot touch
};

// NotFound, PermissionDenied or InvalidArgument, naming the file.
absl::StatusOr<std::string> ReadIdentityFile(const std::string& path, Secrecy secrecy);

// What tells a file from what it was: another inode, size, or time of its content or of its entry, in
// nanoseconds.  0: it is not there.
uint64_t FileVersion(const std::string& path);

// Writes `text` under mode 0600 beside `path` and renames it there: readers see the old or the new
// file, whole, and a symbolic link at `path` is replaced, not followed.
absl::Status WritePrivateFile(const std::string& path, const std::string& text);

// Overwrites the file's bytes and removes it.  NotFound if it is not there; a symbolic link or a
// file that is not ours is left alone (FailedPrecondition).
absl::Status DestroyPrivateFile(const std::string& path);

}  // namespace sekisho::identity
