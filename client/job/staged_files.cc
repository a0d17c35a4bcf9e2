// SPDX-License-Identifier: Apache-2.0
#include "client/job/staged_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "client/site/harmless.h"
#include "common/refusal.h"
#include "rsl/check.h"
#include "rsl/gram_errors.h"
#include "rsl/location.h"
#include "rsl/printer.h"

namespace sekisho::client {
namespace {

using Kind = rsl::Location::Kind;

absl::Status CannotRead(const std::string& url, const std::string& why) {
  return Refuse(absl::StatusCode::kInvalidArgument, 135, fmt::format("cannot read {}: {}", Harmless(url), why),
                "name a file of this machine that you can read");
}

struct CloseFile {
  void operator()(const int* fd) const {
    close(*fd);
    delete fd;
  }
};

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

}  // namespace

std::vector<StagedSource> StagedSources(const rsl::JobDescription& job) {
  std::vector<StagedSource> sources;
  std::set<std::string> seen;
  const auto add = [&](const std::string& url, const char* attribute, int code) {
    if (seen.insert(url).second) {
      sources.push_back({url, attribute, code});
    }
  };
  if (rsl::ReadLocation(job.executable).kind == Kind::kClient) {
    add(job.executable, "executable", rsl::gram::STAGING_EXECUTABLE);
  }
  if (rsl::ReadLocation(job.standard_input).kind == Kind::kClient) {
    add(job.standard_input, "stdin", rsl::gram::STAGING_STDIN);
  }
  for (const auto* transfers : {&job.file_stage_in, &job.file_stage_in_shared}) {
    for (const rsl::Transfer& transfer : *transfers) {
      const Kind kind = rsl::ReadLocation(transfer.from).kind;
      if (kind == Kind::kClient || kind == Kind::kPath) {
        add(transfer.from, "file_stage_in", rsl::gram::STAGE_IN_FAILED);
      }
    }
  }
  return sources;
}

std::string LocalPath(const std::string& url) { return rsl::ReadLocation(url).path; }

absl::StatusOr<proto::RequestBody::ClientFile> SumFile(const std::string& url) {
  const std::unique_ptr<int, CloseFile> fd(new int(open(LocalPath(url).c_str(), O_RDONLY | O_CLOEXEC)));
  struct stat status {};
  if (*fd < 0 || fstat(*fd, &status) != 0) {
    return CannotRead(url, std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    return CannotRead(url, "expected a regular file");
  }
  const std::unique_ptr<EVP_MD_CTX, FreeContext> sum(EVP_MD_CTX_new());
  CHECK(EVP_DigestInit_ex(sum.get(), EVP_sha256(), nullptr) == 1);
  std::string buffer(1 << 20, '\0');
  uint64_t size = 0;
  for (;;) {
    const ssize_t got = read(*fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return CannotRead(url, std::strerror(errno));
    }
    if (got == 0) {
      break;
    }
    size += uint64_t(got);
    CHECK(EVP_DigestUpdate(sum.get(), buffer.data(), size_t(got)) == 1);
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  CHECK(EVP_DigestFinal_ex(sum.get(), digest, &length) == 1);
  proto::RequestBody::ClientFile file;
  file.set_url(url);
  file.set_size(size);
  file.set_sha256(digest, length);
  file.set_mode(status.st_mode & 0777);
  return file;
}

absl::StatusOr<ClientFiles> SumStagedFiles(const rsl::JobDescription& job) {
  ClientFiles files;
  for (const StagedSource& source : StagedSources(job)) {
    if (job.array && source.url.find("$(SEKISHO_ARRAY_INDEX)") != std::string::npos) {
      return Refuse(absl::StatusCode::kInvalidArgument, 1,
                    fmt::format("{}: an array's files are sent once, for all elements; saw {}", source.attribute,
                                Harmless(source.url)),
                    "name each file, and let the elements choose among them");
    }
    absl::StatusOr<proto::RequestBody::ClientFile> file = SumFile(source.url);
    if (!file.ok()) {
      return Refuse(file.status().code(), source.gram_code, source.attribute + ": " + Message(file.status()),
                    Remedy(file.status()));
    }
    *files.Add() = *std::move(file);
  }
  return files;
}

absl::StatusOr<ClientFiles> SumStagedFiles(const std::string& rsl) {
  const rsl::CheckReport checked = rsl::Check(rsl);
  return checked.jobs.size() == 1 ? SumStagedFiles(checked.jobs[0]) : ClientFiles();
}

std::string FullPath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path full = std::filesystem::absolute(path, error);
  return error || path.empty() || path.find("://") != std::string::npos ? path : full.lexically_normal().string();
}

std::string StageInPair(const std::string& option) {
  const size_t equals = option.rfind('=');
  const std::string local = option.substr(0, equals);
  const std::string remote =
      equals == std::string::npos ? local.substr(local.rfind('/') + 1) : option.substr(equals + 1);
  return fmt::format("({} {})", rsl::PrintLiteral(FullPath(local)), rsl::PrintLiteral(remote));
}

}  // namespace sekisho::client
