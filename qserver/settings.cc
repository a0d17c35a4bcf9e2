// SPDX-License-Identifier: Apache-2.0
#include "qserver/settings.h"

#include <filesystem>

#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/format.h>
#include <asio/ip/network_v4.hpp>
#include <asio/ip/network_v6.hpp>

#include "common/config.h"
#include "common/identity/dn.h"
#include "common/retention.h"
#include "common/version.h"

namespace sekisho::qserver {
namespace {

// ../libexec/sekisho/NAME of where this program is, or beside it.
std::string DefaultHelper(const std::string& name) {
  std::error_code error;
  const std::filesystem::path bin =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const std::filesystem::path installed = bin.parent_path() / "libexec/sekisho" / name;
  return std::filesystem::exists(installed, error) ? installed.string()
                                                   : (bin / name).string();
}

// Beside sekisho-rsh, if it is there.
std::string DefaultPreload(const std::string& remote_shell) {
  std::error_code error;
  const std::filesystem::path path =
      std::filesystem::path(remote_shell).parent_path() / "libsekisho-mpich.so";
  return std::filesystem::exists(path, error) ? path.string() : "";
}

// A job's own is -100 to 0: room enough that no user can undo what the site has said.
constexpr int kAccountPriorityMost = 1000;

void AddTo(std::string& list, const std::string& word) { list += (list.empty() ? "" : ",") + word; }

bool IsNetwork(const std::string& text) {
  std::error_code v4;
  std::error_code v6;
  asio::ip::make_network_v4(text, v4);
  asio::ip::make_network_v6(text, v6);
  return !v4 || !v6;
}

constexpr size_t kDirectMost = 511;  // bytes, as the relay's clients read them

absl::Status CheckDirect(const Config::Relay& relay) {
  size_t bytes = 0;
  for (const Config::Direct& direct : relay.direct()) {
    bytes += direct.network().size() + 1;
    if (!IsNetwork(direct.network())) {
      return absl::InvalidArgumentError(
          fmt::format("relay.direct.network: expected a network like \"10.2.0.0/24\", saw \"{}\"", direct.network()));
    }
  }
  return bytes > kDirectMost ? absl::InvalidArgumentError(fmt::format(
                                   "relay.direct: expected at most {} bytes of networks, saw {}", kDirectMost, bytes))
                             : absl::OkStatus();
}

absl::Status CheckAccountPriorities(const Config& config) {
  for (const auto& [account, priority] : AccountPriorities(config)) {  // the map's own order is anyone's
    if (account.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("accountPriority: expected the name of an account, saw \"\" with {}; name it, or remove the line",
                      priority));
    }
    if (priority < -kAccountPriorityMost || priority > kAccountPriorityMost) {
      return absl::InvalidArgumentError(
          fmt::format("accountPriority.{}: expected {} to {}, saw {}; accounts that are not named have 0", account,
                      -kAccountPriorityMost, kAccountPriorityMost, priority));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::set<std::string> Subjects(const google::protobuf::RepeatedPtrField<std::string>& subjects) {
  std::set<std::string> normalized;
  for (const std::string& subject : subjects) {
    normalized.insert(identity::NormalizeDn(subject));
  }
  return normalized;
}

std::map<std::string, int> AccountPriorities(const Config& config) {
  return {config.account_priority().begin(), config.account_priority().end()};
}

RelaySettings MakeRelaySettings(const Config& config) {
  const Config::Relay& relay = config.relay();
  RelaySettings settings = {.address = relay.address(),
                            .inner = relay.inner(),
                            .porter = relay.porter().empty() ? DefaultHelper("sekisho-nxporter") : relay.porter(),
                            .is_reversed = relay.reversed()};
  for (const Config::Direct& direct : relay.direct()) {
    AddTo(settings.direct, direct.network());
    if (direct.untranslated()) {
      AddTo(settings.direct_untranslated, direct.network());
    }
  }
  return settings;
}

Staging::Settings MakeStagingSettings(const Config& config) {
  const Config::Staging& given = config.staging();
  Staging::Settings settings;
  settings.program = given.program().empty() ? DefaultHelper("sekisho-stager") : given.program();
  settings.rules.roots = {given.root().begin(), given.root().end()};
  settings.rules.file_bytes_max = uint64_t(std::max<int64_t>(given.file_mb(), 0)) << 20;
  if (given.cache_mb() > 0) {
    settings.cache_bytes = uint64_t(given.cache_mb()) << 20;
  }
  if (config.credentials().notice_s() > 0) {
    settings.credential_notice = std::chrono::seconds(config.credentials().notice_s());
  }
  if (given.wait_hours() > 0) {
    settings.wait = std::chrono::hours(given.wait_hours());
  }
  return settings;
}

AdmissionRules MakeRules(const Config& config) {
  AdmissionRules rules;
  rules.site = config.site();
  rules.gatekeepers = Subjects(config.gatekeeper());
  rules.accept_limited = config.accept_limited();
  rules.administrators = Subjects(config.administrator());
  rules.freshness = std::chrono::seconds(config.freshness_s() > 0 ? config.freshness_s() : 300);
  rules.too_short = config.credentials().too_short() == "refuse"   ? TooShort::kRefuse
                    : config.credentials().too_short() == "accept" ? TooShort::kAccept
                                                                   : TooShort::kWarn;
  rules.has_engine = config.has_slurm();
  rules.relay = MakeRelaySettings(config);
  rules.staging = MakeStagingSettings(config).rules;
  rules.projects = {config.project().begin(), config.project().end()};
  rules.wall_time_max_s = config.max_wall_time_s();
  if (config.rsl_limit_kb() > 0) {
    rules.rsl_bytes_max = size_t(config.rsl_limit_kb()) << 10;
  }
  if (config.jobs_per_subject() > 0) {
    rules.jobs_max = config.jobs_per_subject();
  }
  if (config.kept_mb_per_subject() > 0) {
    rules.kept_bytes_max = uint64_t(config.kept_mb_per_subject()) << 20;
  }
  utsname machine{};
  uname(&machine);
  rules.host = {{"GLOBUS_HOST_MANUFACTURER", "unknown"},
                {"GLOBUS_HOST_CPUTYPE", machine.machine},
                {"GLOBUS_HOST_OSNAME", machine.sysname},
                {"GLOBUS_HOST_OSVERSION", machine.release}};
  return rules;
}

TaskSettings MakeTaskSettings(const Config& config) {
  TaskSettings settings;
  settings.site = config.site();
  settings.ca_directory = OrDefault(config.ca_directory(), "/etc/grid-security/certificates");
  settings.mpi.mpich = OrDefault(config.mpi().mpich(), "/usr/bin/mpiexec.mpich");
  settings.mpi.openmpi = OrDefault(config.mpi().openmpi(), "/usr/bin/mpiexec.openmpi");
  settings.mpi.remote_shell =
      config.mpi().remote_shell().empty() ? DefaultHelper("sekisho-rsh") : config.mpi().remote_shell();
  settings.mpi.rank_program =
      config.mpi().rank_program().empty() ? DefaultHelper("sekisho-rank") : config.mpi().rank_program();
  const std::string& preload = config.mpi().mpich_preload();
  settings.mpi.mpich_preload = preload == "none" ? ""
                               : preload.empty() ? DefaultPreload(settings.mpi.remote_shell)
                                                 : preload;
  settings.mpi.is_openmpi = config.mpi().default_type() == "openmpi";
  settings.relay = MakeRelaySettings(config);
  if (config.leader_silence_s() > 0) {
    settings.leader_silence_s = config.leader_silence_s();
  }
  return settings;
}

SiteFacts MakeSiteFacts(const Config& config) {
  SiteFacts facts;
  facts.site = config.site();
  facts.version = kVersion;
  facts.wall_time_max_s = config.max_wall_time_s();
  facts.has_engine = config.has_slurm();
  facts.started_ms = Conductor::NowMs();
  const MpiSettings mpi = MakeTaskSettings(config).mpi;
  if (access(mpi.mpich.c_str(), X_OK) == 0) {
    facts.mpi.push_back("mpich");
  }
  if (access(mpi.openmpi.c_str(), X_OK) == 0) {
    facts.mpi.push_back("openmpi");
  }
  return facts;
}

NetworkKeeper::Settings MakeNetworkSettings(const Config::Network& given) {
  NetworkKeeper::Settings settings;
  settings.prober = given.prober().empty() ? DefaultHelper("sekisho-agent") : given.prober();
  settings.account = OrDefault(given.account(), "nobody");
  settings.interface = given.interface();
  if (given.period_s() > 0) {
    settings.upkeep.period_s = given.period_s();
  }
  return settings;
}

SlurmSettings MakeSlurmSettings(const Config& config) {
  const Config::Slurm& slurm = config.slurm();
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const std::string listen = OrDefault(config.listen_nodes(), kListenNodes);
  const std::string trusted = OrDefault(config.ca_directory(), "/etc/grid-security/certificates");
  const auto given = [](const std::string& value, const std::string& fallback) {
    return value.empty() ? fallback : value;
  };
  return {.commands = given(slurm.commands(), "/usr/bin"),
          .conf = slurm.conf(),
          .pilot = given(slurm.pilot(), DefaultHelper("sekisho-pilot")),
          .server = given(slurm.server(), host + listen.substr(listen.rfind(':'))),
          .ca_directory = given(slurm.ca_directory(), trusted),
          .subject = slurm.server_subject(),
          .process_limit = slurm.process_limit()};
}

absl::Status CheckConfig(const Config& config) {
  if (config.site().empty()) {
    return absl::InvalidArgumentError("site: expected the site's name, as users type it");
  }
  if (config.jobmanager().empty()) {
    return absl::InvalidArgumentError(
        "jobmanager: expected the subjects of the jobmanagers, saw none");
  }
  RETURN_IF_ERROR(MakeRetention(config.keep_ended_days()).status());
  if (config.has_relay() && config.relay().address().empty()) {
    return absl::InvalidArgumentError("relay.address: expected HOST:PORT, as the nodes reach the relay");
  }
  RETURN_IF_ERROR(CheckDirect(config.relay()));
  if (config.leader_silence_s() < 0) {
    return absl::InvalidArgumentError(
        fmt::format("leaderSilenceS: expected seconds, such as 1800, saw {}", config.leader_silence_s()));
  }
  if (const int life_s = config.relay().token_life_s(); life_s != 0 && (life_s < 4 || life_s > 86400)) {
    return absl::InvalidArgumentError(
        fmt::format("relay.tokenLifeS: expected 4 to 86400, saw {}", life_s));
  }
  for (const std::string& root : config.staging().root()) {
    if (!root.starts_with("/")) {
      return absl::InvalidArgumentError("staging.root: expected an absolute path, saw \"" + root + "\"");
    }
  }
  if (!config.end_hook().empty() && access(config.end_hook().c_str(), X_OK) != 0) {
    return absl::InvalidArgumentError("end_hook: cannot run " + config.end_hook());
  }
  const std::string& too_short = config.credentials().too_short();
  if (!too_short.empty() && too_short != "warn" && too_short != "refuse" && too_short != "accept") {
    return absl::InvalidArgumentError("credentials.tooShort: expected \"warn\", \"refuse\" or \"accept\", saw \"" +
                                      too_short + "\"");
  }
  RETURN_IF_ERROR(CheckAccountPriorities(config));
  const std::string& type = config.mpi().default_type();
  if (!type.empty() && type != "mpich" && type != "openmpi") {
    return absl::InvalidArgumentError(
        "mpi.default_type: expected \"mpich\" or \"openmpi\", saw \"" + type + "\"");
  }
  return absl::OkStatus();
}

AdmissionRules ReadAgain(const Config& config, const AdmissionRules& rules) {
  AdmissionRules later = MakeRules(config);
  later.subject = rules.subject;
  later.has_engine = rules.has_engine;
  later.relay = rules.relay;
  later.staging = rules.staging;
  later.wall_time_max_s = rules.wall_time_max_s;
  later.freshness = rules.freshness;
  return later;
}

}  // namespace sekisho::qserver
