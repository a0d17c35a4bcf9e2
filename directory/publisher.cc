// SPDX-License-Identifier: Apache-2.0
#include "directory/publisher.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <asio/posix/stream_descriptor.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "common/away.h"
#include "common/log.h"
#include "common/refusal.h"
#include "directory/errors.h"
#include "glue/bundle.h"

namespace sekisho::directory {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRedialMin{500};
constexpr milliseconds kRedialMax{5'000};
constexpr char kExpiringSubtrees[] = "dynamicSubtrees";  // RFC 2589: of the server's root entry

int64_t NowSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Publisher::Publisher(Loop& loop, Options options) : loop_(loop), options_(std::move(options)), changed_(loop) {}

void Publisher::Want(std::shared_ptr<const std::vector<glue::Entry>> entries, bool removes) {
  wanted_ = std::move(entries);
  removes_ = removes;
  ++generation_;
  changed_.Notify();
}

absl::StatusOr<Publisher::Opened> Publisher::Open(const Options& options) {
  Opened opened;
  glue::Ldap::Options how = options.server;
  std::optional<glue::Bundle> trusted;  // read while TLS comes up
  if (!options.ca_directory.empty()) {
    ASSIGN_OR_RETURN(glue::Bundle bundle, glue::Bundle::Make(options.ca_directory));
    trusted.emplace(std::move(bundle));
    how.ca_file = trusted->ca_file();
    how.crl_file = trusted->crl_file();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<glue::Ldap> server, glue::Ldap::Open(how));
  opened.server = std::move(server);
  ASSIGN_OR_RETURN(const auto root, opened.server->Search("", glue::Ldap::Scope::kBase, "(objectClass=*)",
                                                          {kExpiringSubtrees}));
  for (const glue::Entry& entry : root) {
    for (const std::string& subtree : entry.All(kExpiringSubtrees)) {
      opened.has_expiry |= glue::CanonicalDn(options.base).ends_with(glue::CanonicalDn(subtree));
    }
  }
  const auto base = opened.server->Search(options.base, glue::Ldap::Scope::kBase, "(objectClass=*)", {"1.1"});
  if (absl::IsNotFound(base.status())) {
    return errors::NoSiteDn(options.server.url, options.base);
  }
  RETURN_IF_ERROR(base.status());
  auto entries = opened.server->Search(options.site_dn, glue::Ldap::Scope::kSubtree, "(objectClass=*)");
  if (!entries.ok() && !absl::IsNotFound(entries.status())) {
    return entries.status();
  }
  if (entries.ok()) {
    for (glue::Entry& entry : *entries) {
      std::string name = glue::CanonicalDn(entry.dn);
      opened.published[std::move(name)] = {std::move(entry), 0};
    }
  }
  return opened;
}

DiffRules Publisher::Rules(bool has_expiry) const {
  DiffRules rules;
  rules.now_s = NowSeconds();
  rules.validity_s = options_.validity_s;
  rules.renew_after_s = std::max(1, options_.validity_s / 3);
  rules.has_expiry = has_expiry;
  rules.removes = removes_;
  return rules;
}

awaitable<absl::Status> Publisher::KeepTrue(Opened opened) {
  // While nothing is asked, there is nothing to read but that the server has gone.
  asio::posix::stream_descriptor idle(loop_);
  std::error_code is_closed;  // then the next call says so
  idle.assign(dup(opened.server->descriptor()), is_closed);
  const auto is_gone = std::make_shared<bool>(false);
  for (;;) {
    const uint64_t generation = generation_;
    const DiffRules rules = Rules(opened.has_expiry);
    std::vector<glue::Change> changes = Diff(opened.published, *wanted_, rules);
    if (!changes.empty()) {
      const size_t count = changes.size();
      auto write = [server = opened.server, changes = std::move(changes)] { return server->Apply(changes); };
      const absl::Status status = co_await Away(loop_, worker_, std::move(write));
      CO_RETURN_IF_ERROR(status);
      spdlog::debug("written index={} changes={}", options_.server.url, count);
    }
    const int64_t left_s = std::clamp<int64_t>(NextRenewal(opened.published, rules) - NowSeconds(), 1, 3600);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(left_s);
    idle.async_wait(asio::posix::stream_descriptor::wait_read, [this, is_gone](const std::error_code& error) {
      *is_gone = *is_gone || !error;
      changed_.Notify();
    });
    while (generation_ == generation && !*is_gone && std::chrono::steady_clock::now() < until) {
      co_await changed_.WaitFor(std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now()));
    }
    idle.cancel();
    if (*is_gone) {
      co_return absl::UnavailableError(options_.server.url + ": the server has closed the connection");
    }
  }
}

void Publisher::Report(const absl::Status& status) {
  const std::string problem = Message(status);
  if (std::exchange(last_problem_, problem) != problem) {
    spdlog::warn("the index is not written, trying again: {}{}", Printable(problem),
                 Remedy(status).empty() ? "" : "; " + Remedy(status));
  }
}

awaitable<void> Publisher::Run() {
  milliseconds redial = kRedialMin;
  for (;;) {
    while (wanted_ == nullptr) {
      co_await changed_.Wait();
    }
    auto open = [options = options_] { return Open(options); };
    absl::StatusOr<Opened> opened = co_await Away(loop_, worker_, std::move(open));
    absl::Status status = opened.status();
    if (status.ok()) {
      spdlog::info("index connected index={} entries={} expires={}", options_.server.url, opened->published.size(),
                   opened->has_expiry);
      last_problem_.clear();
      const auto began = std::chrono::steady_clock::now();
      status = co_await KeepTrue(*std::move(opened));
      if (std::chrono::steady_clock::now() - began > kRedialMax) {
        redial = kRedialMin;
      }
      if (absl::IsPermissionDenied(status)) {
        status = errors::NotOurs(options_.server.url, options_.site_dn, Message(status));
      }
    }
    Report(status);
    co_await Sleep(loop_, redial);
    redial = std::min(redial * 2, kRedialMax);
  }
}

}  // namespace sekisho::directory
