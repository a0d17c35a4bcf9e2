// SPDX-License-Identifier: Apache-2.0
// sekisho-directory: publishes the site as GLUE 2.0 in LDAP.  docs/operations/directory.md,
// docs/protocol/16-directory.md.  Nothing depends on it.
#include <cstdio>
#include <deque>

#include <CLI/CLI.hpp>

#include "common/daemon.h"
#include "common/identity/credential.h"
#include "common/log.h"
#include "common/metrics.h"
#include "common/refusal.h"
#include "directory/config.pb.h"
#include "directory/differ.h"
#include "directory/json.h"
#include "directory/publisher.h"
#include "directory/site_link.h"
#include "directory/view.h"

namespace sekisho::directory {
namespace {

constexpr char kBase[] = "GLUE2GroupID=grid,o=glue";
constexpr int kValidity = 120;
constexpr std::chrono::seconds kGrace{5};  // so long a broken stream is no news

absl::Status CheckConfig(const Config& config) {
  if (config.site().empty()) {
    return absl::InvalidArgumentError("site: expected the site's name, as users type it");
  }
  if (config.contact().find(':') == std::string::npos) {
    return absl::InvalidArgumentError("contact: expected HOST:PORT of the gatekeeper, saw \"" + config.contact() + "\"");
  }
  if (config.qserver().find(':') == std::string::npos) {
    return absl::InvalidArgumentError("qserver: expected HOST:PORT of the queue server, saw \"" + config.qserver() +
                                      "\"");
  }
  const std::string& quality = config.about().quality_level();
  if (!quality.empty() && quality != "development" && quality != "testing" && quality != "pre-production" &&
      quality != "production") {
    return absl::InvalidArgumentError(
        "about.qualityLevel: expected development, testing, pre-production or production, saw \"" + quality + "\"");
  }
  if (config.validity_s() != 0 && (config.validity_s() < 3 || config.validity_s() > 86'400)) {
    return absl::InvalidArgumentError("validityS: expected 3 to 86400 seconds");
  }
  return absl::OkStatus();
}

Profile MakeProfile(const Config& config) {
  Profile profile;
  profile.site = config.site();
  profile.contact = config.contact();
  profile.description = config.about().description();
  profile.www = {config.about().www().begin(), config.about().www().end()};
  profile.quality = OrDefault(config.about().quality_level(), "production");
  profile.access = {config.about().access().begin(), config.about().access().end()};
  profile.nodes_reach_out = config.about().nodes_reach_out();
  profile.nodes_are_reached = config.about().nodes_are_reached();
  profile.protocols = {config.about().protocol().begin(), config.about().protocol().end()};
  for (const Config::Link& link : config.about().link()) {
    profile.links.push_back({link.site(), link.rtt_ms(), link.bandwidth_mbps()});
  }
  return profile;
}

absl::StatusOr<SiteLink::Options> MakeLinkOptions(const Config& config) {
  ASSIGN_OR_RETURN(const identity::Credential host,
                   identity::LoadHostCredential(config.host_certificate(), config.host_key()));
  const std::string& address = config.qserver();
  return SiteLink::Options{
      address, tls::MakeClientTls(host, OrDefault(config.ca_directory(), "/etc/grid-security/certificates"),
                                  {.host = address.substr(0, address.rfind(':')), .subject = config.qserver_subject()})};
}

Publisher::Options MakePublisherOptions(const Config& config, const Config::Index& index) {
  Publisher::Options options;
  options.base = OrDefault(index.base(), kBase);
  options.site_dn = SiteDn(config.site(), options.base);
  options.validity_s = config.validity_s() > 0 ? config.validity_s() : kValidity;
  options.server.url = index.url();
  options.server.starts_tls = index.url().rfind("ldap://", 0) == 0;
  options.server.is_external = true;
  if (index.url().rfind("ldapi:", 0) != 0) {
    options.ca_directory = OrDefault(config.ca_directory(), "/etc/grid-security/certificates");
    options.server.certificate = OrDefault(config.host_certificate(), "/etc/grid-security/hostcert.pem");
    options.server.key = OrDefault(config.host_key(), "/etc/grid-security/hostkey.pem");
  }
  return options;
}

absl::Status Publish(const Config& config) {
  Loop loop(1);
  ASSIGN_OR_RETURN(SiteLink::Options link_options, MakeLinkOptions(config));
  std::deque<Publisher> publishers;
  std::deque<std::string> bases;
  for (const Config::Index& index : config.index()) {
    const Publisher::Options options = MakePublisherOptions(config, index);
    bases.push_back(options.base);
    publishers.emplace_back(loop, options);
  }
  View view(loop, MakeProfile(config), kGrace, [&](const View& now) {
    for (size_t i = 0; i < publishers.size(); ++i) {
      publishers[i].Want(std::make_shared<const std::vector<glue::Entry>>(now.Entries(bases[i])), now.is_connected());
    }
  });
  SiteLink link(loop, std::move(link_options),
                [&](const proto::SiteState* state, const std::string& why) { view.Hear(state, why); });
  for (Publisher& publisher : publishers) {
    co_spawn(loop, publisher.Run(), Vital("publishing"));
  }
  co_spawn(loop, link.Run(), Vital("the queue server's word"));
  ServeMetrics(loop, "directory", OrDefault(config.metrics(), "127.0.0.1:7524"), [&](Metrics& metrics) {
    metrics.Gauge("connected", "1: the queue server tells us of the site.", view.is_connected());
    metrics.Gauge("indexes", "LDAP servers to keep true.", config.index_size());
    metrics.Gauge("entries", "Entries that the site has now.", double(view.Entries(kBase).size()));
  });
  spdlog::info("publishing site={} qserver={} indexes={}", config.site(), config.qserver(), config.index_size());
  NotifyReady();
  co_spawn(loop, WaitForStop(loop), [](const std::exception_ptr& thrown) {
    Vital("its signals")(thrown);
    spdlog::info("stopping: what was published ages out");
    std::_Exit(0);
  });
  loop.run();
  return absl::OkStatus();
}

// The site as it is now, as JSON on standard output.
absl::Status Export(const Config& config) {
  Loop loop(1);
  ASSIGN_OR_RETURN(SiteLink::Options link_options, MakeLinkOptions(config));
  const Profile profile = MakeProfile(config);
  absl::Status outcome = absl::UnavailableError("the queue server said nothing");
  SiteLink link(loop, std::move(link_options), [&](const proto::SiteState* state, const std::string& why) {
    if (state == nullptr) {
      outcome = absl::UnavailableError(why);
    } else {
      Published none;
      DiffRules rules;
      rules.now_s = std::chrono::duration_cast<std::chrono::seconds>(
                        std::chrono::system_clock::now().time_since_epoch()).count();
      rules.validity_s = config.validity_s() > 0 ? config.validity_s() : kValidity;
      const std::vector<glue::Entry> wanted = MakeEntries(profile, *state, {.is_connected = true}, kBase);
      Diff(none, wanted, rules);
      std::vector<glue::Entry> dated;
      for (const glue::Entry& entry : wanted) {
        dated.push_back(none[glue::CanonicalDn(entry.dn)].entry);
      }
      std::puts(ToJson(dated).dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
      outcome = absl::OkStatus();
    }
    loop.stop();
  });
  co_spawn(loop, link.Run(), Vital("the queue server's word"));
  loop.run();
  std::fflush(stdout);
  if (outcome.ok()) {
    std::_Exit(0);  // the stream still stands
  }
  return outcome;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Publishes a Sekisho site as GLUE 2.0 entries in LDAP servers, and keeps them true.\n"
      "Manual: docs/operations/directory.md");
  DaemonCommand command;
  AddDaemonOptions(app, "directory", command);
  bool is_export = false;
  app.add_flag("--export", is_export, "Print the site as it is now as JSON, and exit");
  if (const auto code = ReadCommandLine(app, argc, argv)) {
    return *code;
  }
  InitLog("directory");

  const absl::StatusOr<Config> config = LoadConfig<Config>(command.config_path);
  if (!config.ok()) {
    return ReportStart(config.status());
  }
  if (const absl::Status status = CheckConfig(*config); !status.ok()) {
    return ReportStart(absl::Status(status.code(), command.config_path + ": " + Message(status)));
  }
  if (command.check) {
    return 0;
  }
  return ReportStart(is_export ? Export(*config) : Publish(*config));
}

}  // namespace
}  // namespace sekisho::directory

int main(int argc, char** argv) { return sekisho::directory::Main(argc, argv); }
