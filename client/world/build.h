// SPDX-License-Identifier: Apache-2.0
// `sekisho mpirun --build`: a program is made from its sources at each site, once for each content and architecture.
// docs/protocol/15-mpirun.md, "Building"; the future work of Tanaka et al., section 6.2.
#pragma once

#include <string>

#include "client/site/session.h"

namespace sekisho::client {

// The sources, packed into a file without a name, which goes when this does.
class Sources {
 public:
  // Without version control's files, what those ignore, and what a build has left: *.o, *.a, *.so and `program`.
  // InvalidArgument: `folder` is none, cannot be packed, or is the home by the name of ".".
  static absl::StatusOr<Sources> Pack(const std::string& folder, const std::string& program);

  Sources(Sources&& other) noexcept : fd_(std::exchange(other.fd_, -1)), sum_(std::move(other.sum_)) {}
  Sources& operator=(Sources&&) = delete;
  ~Sources();

  std::string archive() const;  // a path of this process
  const std::string& sum() const { return sum_; }  // SHA-256 of the content, in hexadecimal

 private:
  Sources() = default;

  int fd_ = -1;
  std::string sum_;
};

struct Build {
  std::string command;       // run by a shell in the sources' folder
  std::string archive;       // of the sources, here
  std::string sum;           // of their content
  std::string architecture;  // of the nodes
};

// Where it is, in the account's home: another content, command or architecture is another place.
std::string PlaceOf(const Build& build);

// The job that makes it, unless it is there; `nonce` tells it from others of the kind.
std::string BuildRsl(const Build& build, const std::string& nonce);

// The one that all nodes have.  FailedPrecondition if they differ, or no node is up.
absl::StatusOr<std::string> ArchitectureOf(const proto::SiteInfo& site);

// Runs that job to its end and shows what it writes, on standard error; its exit code.
awaitable<int> BuildAtSite(Session& session, Build build);

}  // namespace sekisho::client
