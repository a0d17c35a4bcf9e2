// SPDX-License-Identifier: Apache-2.0
// Publishes sites that do not exist, by the code that publishes real ones, and takes the time; or writes the same
// changes as LDIF, for ldapmodify.  docs/operations/benchmarks.md
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "directory/differ.h"
#include "directory/entries.h"
#include "glue/ldap.h"

namespace sekisho::directory {
namespace {

struct Options {
  std::string url, base = "GLUE2GroupID=grid,o=glue", ldif;
  std::vector<std::string> names;  // of sites
  int sites = 1;
  int resources = 1;
  std::vector<std::string> resource_names;
  std::vector<std::string> queues;
  int rounds = 1;  // of changes after the first publication
  int validity_s = 3600;
  bool is_published = false;  // already: only the rounds are made
};

proto::SiteState State(const Options& options, const std::string& site, int round) {
  proto::SiteState state;
  state.set_site(site);
  state.set_version("0.1.0");
  state.set_has_allocator(true);
  state.add_mpi("mpich");
  const int resources = std::max(options.resources, int(options.resource_names.size()));
  for (int i = 0; i < resources; ++i) {
    proto::ResourceState& resource = *state.add_resource();
    resource.set_name(size_t(i) < options.resource_names.size() ? options.resource_names[size_t(i)]
                                                                : fmt::format("node{}", i));
    resource.set_architecture("x86_64");
    resource.set_os("debian12");
    resource.set_memory_mb(65536);
    resource.set_clock_mhz(2000 + i % 10 * 100);
    resource.set_processors_per_node(64);
    resource.set_nodes(1);
    resource.set_nodes_up(1);
    resource.set_nodes_used(round > 0);
    resource.set_processors_up(64);
    resource.set_processors_free(64 - round % 64);
    resource.mutable_queue()->Add(options.queues.begin(), options.queues.end());
  }
  state.add_share()->set_service("jobmanager-agent");
  for (const std::string& queue : options.queues) {
    proto::ShareState& share = *state.add_share();
    share.set_service("jobmanager-agent-" + queue);
    share.set_queue(queue);
  }
  for (proto::ShareState& share : *state.mutable_share()) {
    share.set_running(round);
    share.set_slots_used(round);
  }
  return state;
}

Profile ProfileOf(const std::string& site) {
  Profile profile;
  profile.site = site;
  profile.contact = "gate.example.org:2119";
  profile.nodes_reach_out = true;
  return profile;
}

std::string Base64(const std::string& text) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < text.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0);
    }
    for (size_t k = 0; k < 4; ++k) {
      out += i + k > text.size() ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
    }
  }
  return out;
}

void WriteLdif(std::ofstream& file, const std::vector<glue::Change>& changes) {
  for (const glue::Change& change : changes) {
    const bool is_add = change.kind == glue::Change::Kind::kAdd;
    file << "dn:: " << Base64(change.dn) << "\nchangetype: " << (is_add ? "add" : "modify") << '\n';
    for (const auto& [name, values] : change.attributes) {
      if (!is_add) {
        file << "replace: " << name << '\n';
      }
      for (const std::string& value : values) {
        file << name << ":: " << Base64(value) << '\n';
      }
      file << (is_add ? "" : "-\n");
    }
    file << '\n';
  }
}

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

absl::Status Run(const Options& options) {
  std::vector<std::string> names = options.names;
  for (int i = 0; names.size() < size_t(options.sites); ++i) {
    names.push_back(fmt::format("site{:03}", i));
  }
  DiffRules rules;
  rules.now_s = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  rules.validity_s = options.validity_s;
  rules.renew_after_s = options.validity_s;
  std::unique_ptr<glue::Ldap> server;
  std::ofstream ldif;
  if (options.ldif.empty()) {
    glue::Ldap::Options how;
    how.url = options.url;
    how.is_external = true;
    how.timeout = std::chrono::minutes(1);
    ASSIGN_OR_RETURN(server, glue::Ldap::Open(how));
  } else {
    ldif.open(options.ldif);
  }
  Published published;
  for (int round = 0; round <= options.rounds; ++round) {
    const auto began = std::chrono::steady_clock::now();
    std::vector<glue::Entry> wanted;
    for (const std::string& name : names) {
      const auto entries = MakeEntries(ProfileOf(name), State(options, name, round), {.is_connected = true}, options.base);
      wanted.insert(wanted.end(), entries.begin(), entries.end());
    }
    rules.now_s += round;
    const std::vector<glue::Change> changes = Diff(published, wanted, rules);
    if (round == 0 && options.is_published) {
      continue;
    }
    const double thinking_s = Seconds(began);
    if (server == nullptr) {
      WriteLdif(ldif, changes);
      continue;
    }
    RETURN_IF_ERROR(server->Apply(changes));
    fmt::print("{{\"round\": {}, \"entries\": {}, \"changes\": {}, \"thinking_s\": {:.6f}, \"seconds\": {:.6f}}}\n", round,
               wanted.size(), changes.size(), thinking_s, Seconds(began));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace sekisho::directory

int main(int argc, char** argv) {
  sekisho::directory::Options options;
  CLI::App app("Publishes made-up sites in an LDAP server, or writes the changes as LDIF.");
  app.add_option("--url", options.url, "ldapi://SOCKET, or ldap://HOST:PORT");
  app.add_option("--base", options.base);
  app.add_option("--site", options.names, "A site's name; may be repeated")->allow_extra_args(false);
  app.add_option("--sites", options.sites, "So many sites");
  app.add_option("--resources", options.resources, "Execution environments of each");
  app.add_option("--resource", options.resource_names, "One's name; may be repeated")->allow_extra_args(false);
  app.add_option("--queue", options.queues, "A queue's name; may be repeated")->allow_extra_args(false);
  app.add_option("--rounds", options.rounds, "Changes of every site after the first publication");
  app.add_option("--validity", options.validity_s);
  app.add_option("--ldif", options.ldif, "Write this file instead");
  app.add_flag("--published", options.is_published, "The first publication has been made");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = sekisho::directory::Run(options);
  if (!status.ok()) {
    fmt::print(stderr, "sekisho-directory-load: {}\n", status.ToString());
    return 1;
  }
  return 0;
}
