// SPDX-License-Identifier: Apache-2.0
// sekisho-qserver: the site's queue.  docs/operations/qserver.md, docs/protocol/5-queue.md.
#include <array>
#include <cstdio>

#include <CLI/CLI.hpp>
#include <grpcpp/grpcpp.h>
#include <openssl/rand.h>
#include <pwd.h>
#include <sys/stat.h>

#include "common/acceptor.h"
#include "common/daemon.h"
#include "common/identity/dn.h"
#include "common/log.h"
#include "common/metrics.h"
#include "common/retention.h"
#include "common/tls/client_tls.h"
#include "qserver/accounting.h"
#include "qserver/administer.h"
#include "qserver/callers.h"
#include "qserver/config.pb.h"
#include "qserver/doors.h"
#include "qserver/end_hook.h"
#include "qserver/engine_driver.h"
#include "qserver/errors.h"
#include "qserver/figures.h"
#include "qserver/inventory_watch.h"
#include "qserver/network_watch.h"
#include "qserver/nft.h"
#include "qserver/nodes_service.h"
#include "qserver/queue_service.h"
#include "qserver/relay_tokens.h"
#include "qserver/settings.h"
#include "qserver/site_watch_service.h"
#include "qserver/slurm.h"
#include "qserver/staging.h"
#include "qserver/trust.h"

namespace sekisho::qserver {
namespace {

constexpr size_t kConnectionsOfAnAddress = 256;  // of agents and pilots

// Larger than any number of an earlier life, also if the database was lost, or put back from a copy: who
// follows the events asks for what comes after the last that he has seen.
uint64_t FirstSequence(std::chrono::system_clock::time_point now) {
  constexpr int kEventsASecond = 24;  // bits
  return uint64_t(std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count()) << kEventsASecond;
}

// Made once, kept with the jobs.
absl::StatusOr<std::string> PilotSecret(EventStore& store) {
  constexpr char kName[] = "pilot_secret";
  ASSIGN_OR_RETURN(std::string secret, store.Value(kName));
  if (secret.empty()) {
    std::array<unsigned char, 32> bytes;
    CHECK(RAND_bytes(bytes.data(), int(bytes.size())) == 1);
    for (const unsigned char byte : bytes) {
      secret += fmt::format("{:02x}", byte);
    }
    store.Put(kName, secret);
  }
  return secret;
}

absl::StatusOr<Account> FindSystemAccount(const std::string& name) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16 * 1024);
  const int error = getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) {
    return Account{found->pw_dir, found->pw_uid};
  }
  return error == 0 || error == ENOENT || error == ESRCH ? errors::NoSuchAccount(name)
                                                         : errors::CannotLookUp(name, error);
}

// Ended jobs and their output go after their time.
awaitable<void> KeepTidy(Loop& loop, Conductor& conductor, Retention retention) {
  for (;;) {
    const bool has_more = conductor.ForgetEndedBefore(Conductor::NowMs() - retention.keep.count());
    const std::chrono::milliseconds pause = has_more ? std::chrono::seconds(1) : retention.every;
    co_await Sleep(loop, pause);
  }
}

// Of jobs that wait already too.
void SetAccountPriorities(const Config& config, Conductor& conductor) {
  conductor.Change([&](Queue& queue) {
    queue.SetAccountPriorities(AccountPriorities(config));
    Effects effects;
    effects.is_pass_due = true;
    return effects;
  });
}

// A mistake changes nothing.
void Reload(const std::string& path, AdmissionRules& rules, Conductor& conductor) {
  const absl::StatusOr<Config> config = LoadConfig<Config>(path);
  const absl::Status status = config.ok() ? CheckConfig(*config) : config.status();
  if (!status.ok() || config->site() != rules.site) {
    spdlog::error("the last good configuration stays in force: {}",
                  status.ok() ? "the site has another name" : Message(status));
    return;
  }
  rules = ReadAgain(*config, rules);
  SetAccountPriorities(*config, conductor);
  spdlog::info("configuration read again");
}

absl::Status Run(const Config& config, const std::string& config_path) {
  RaiseDescriptorLimit();
  GiveMemoryBack();
  ASSIGN_OR_RETURN(const Retention retention, MakeRetention(config.keep_ended_days()));
  const std::string state = OrDefault(config.state_directory(), "/var/lib/sekisho/qserver");
  ASSIGN_OR_RETURN(const identity::Credential host,
                   identity::LoadHostCredential(config.host_certificate(), config.host_key()));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Trust> trust,
      Trust::Load(OrDefault(config.ca_directory(), "/etc/grid-security/certificates"),
                  OrDefault(config.grid_mapfile(), "/etc/grid-security/grid-mapfile")));

  // What lasts.
  Loop& loop = ProcessLoop();
  umask(077);
  Spool spool(state + "/spool", uint64_t(config.spool_reserve_mb() > 0 ? config.spool_reserve_mb() : 64) << 20);
  RETURN_IF_ERROR(spool.Prepare());
  ASSIGN_OR_RETURN(const std::unique_ptr<EventStore> store,
                   EventStore::Open(loop, state + "/events.db"));
  store->SkipTo(FirstSequence(std::chrono::system_clock::now()));
  const std::string allocator_target = OrDefault(config.allocator(), "unix:/run/sekisho/allocator/socket");
  const std::unique_ptr<AllocatorLink> allocator = AllocatorLink::Dial(loop, allocator_target);
  Conductor conductor(loop, *store, spool, *allocator, MakeTaskSettings(config),
                      config.max_wall_time_s(), Subjects(config.publish_jobs_of()));
  Slurm slurm(MakeSlurmSettings(config));
  ASSIGN_OR_RETURN(const std::string secret, PilotSecret(*store));
  EngineDriver engine(loop, conductor, slurm, secret);
  if (config.has_slurm()) {
    conductor.SetEngine(engine);
  }
  RelayTokens relay({.address = MakeRelaySettings(config).OfNodes(),
                     .site = config.site(),
                     .life = config.relay().token_life_s() > 0
                                 ? std::chrono::seconds(config.relay().token_life_s())
                                 : RelayTokens::kLife},
                    host.Clone());
  if (config.has_relay()) {
    conductor.SetRelay(relay);
  }
  Staging staging(loop, conductor, MakeStagingSettings(config));
  conductor.SetStaging(staging);
  AccountingFile accounting(config.accounting().empty() ? state + "/accounting.jsonl" : config.accounting());
  if (config.accounting() != "none") {
    RETURN_IF_ERROR(accounting.Prepare());
    conductor.SetAccounting(accounting);
  }
  EndHook end_hook(loop, *store, config.end_hook());
  if (!config.end_hook().empty()) {
    RETURN_IF_ERROR(end_hook.Restore());
    conductor.SetEndHook(end_hook);
    co_spawn(loop, end_hook.Run(), Vital("its end hook"));
  }
  RETURN_IF_ERROR(conductor.Restore());
  SetAccountPriorities(config, conductor);
  KnownNodes known_nodes(*store);
  RETURN_IF_ERROR(known_nodes.Restore());

  // Who may call.
  AdmissionRules rules = MakeRules(config);
  rules.subject = identity::SubjectText(*host.chain.front());
  Callers::Rules who{.jobmanagers = Subjects(config.jobmanager()),
                     .directories = Subjects(config.directory()),
                     .nodes = Subjects(config.node())};
  if (conductor.has_engine()) {
    who.is_pilot = [&engine](const std::string& job_id, const std::string& token) {
      return engine.IsTokenOf(job_id, token);
    };
  }
  Callers callers(loop, *trust, std::move(who));
  Acceptor queue_door(loop, {});
  Acceptor nodes_door(loop, {.per_peer = kConnectionsOfAnAddress});
  QueueService::Judges judges;
  judges.caller = [&](const grpc::CallbackServerContext& context) -> absl::StatusOr<Jobmanager> {
    ASSIGN_OR_RETURN(Jobmanager caller, callers.JudgeJobmanager(*context.auth_context()));
    if (!queue_door.Finish(context.peer())) {
      return errors::TooManyConnections();
    }
    return caller;
  };
  judges.request = [&](const proto::QueueRequest& request) {
    return Verify(request, rules, trust->signers(), trust->gridmap(), tls::SystemClock());
  };
  judges.now = tls::SystemClock;
  judges.chain = [&](const identity::Chain& chain) {
    return identity::VerifyChain(chain, trust->signers().trust(), tls::SystemClock());
  };
  judges.find_account = FindSystemAccount;
  QueueService queue_service(loop, conductor, rules, std::move(judges));
  queue_service.SetStaging(staging);
  Offers offers(host.Clone());
  queue_service.SetOffers(offers);
  AuditFile audit(state + "/audit.jsonl");
  queue_service.SetAudit([&](const std::string& line) { return audit.Write(line); });
  InventoryWatch inventory(loop, allocator_target, [&] { conductor.SiteChanged(); });
  SiteWatchService site_watch_service(loop, conductor, inventory, MakeSiteFacts(config),
                                      [&](const grpc::CallbackServerContext& context) -> absl::Status {
                                        RETURN_IF_ERROR(callers.JudgeDirectory(*context.auth_context()));
                                        return queue_door.Finish(context.peer()) ? absl::OkStatus()
                                                                                 : errors::TooManyConnections();
                                      });
  NodesService nodes_service(
      loop, conductor, known_nodes, [&](const auto& context, const std::string& node) -> absl::Status {
        RETURN_IF_ERROR(callers.JudgeNode(*context.auth_context(), node));
        return nodes_door.Finish(context.peer()) ? absl::OkStatus() : errors::TooManyConnections();
      },
      [&](const auto& context, const auto& hello) -> absl::StatusOr<std::string> {
        if (!conductor.has_engine()) {
          return errors::BadPilot("this site has no batch system");
        }
        ASSIGN_OR_RETURN(const std::string name, engine.JudgePilot(hello));
        return nodes_door.Finish(context.peer()) ? absl::StatusOr<std::string>(name) : errors::TooManyConnections();
      });

  NetworkWatch network(
      loop, MakeNetworkSettings(config.network()), state + "/topology.edges",
      [&](const std::string& node, proto::ServerMessage message) { conductor.Send(node, std::move(message)); },
      [&] { conductor.SiteChanged(); });
  if (config.has_network()) {
    network.Restore();
    nodes_service.SetNetwork(network);
    site_watch_service.SetNetwork(network);
    co_spawn(loop, network.Run(), Vital("its view of the network"));
  }

  // Serve.
  const std::string listen = OrDefault(config.listen(), "0.0.0.0:7512");
  const std::string listen_nodes = OrDefault(config.listen_nodes(), kListenNodes);
  conductor.Run();
  staging.Run();
  if (conductor.has_engine()) {
    engine.Run();
  }
  co_spawn(loop, inventory.Run(), Vital("its view of the inventory"));
  co_spawn(loop, KeepTidy(loop, conductor, retention), Vital("tidying"));
  RETURN_IF_ERROR(queue_door.Listen(listen));
  RETURN_IF_ERROR(nodes_door.Listen(listen_nodes));
  const auto queue_server = Serve(
      queue_door, kQueueDoor, host, [&](const auto& peer, const auto&) { return callers.AtQueueGate(peer); },
      {&queue_service, &site_watch_service});
  const auto nodes_server = Serve(
      nodes_door, kNodesDoor, host,
      [&](const auto& peer, const auto& metadata) { return callers.AtNodesGate(peer, metadata); },
      {&nodes_service});
  ServeMetrics(loop, "qserver", OrDefault(config.metrics(), "127.0.0.1:7521"),
               [&](Metrics& metrics) { AddFigures(metrics, conductor, inventory, store->next_sequence()); });
  spdlog::info("serving site={} port={} port_nodes={}", config.site(), queue_door.port(), nodes_door.port());
  NotifyReady();

  const auto reload = [&] {
    trust->ReadAgain();
    Reload(config_path, rules, conductor);
  };
  co_spawn(loop, WaitForStop(loop, reload), [](const std::exception_ptr& thrown) {
    Vital("its signals")(thrown);
    spdlog::info("stopping");
    std::_Exit(0);  // what was answered is on disk, tasks go on; there is nothing to wind down
  });
  loop.run();
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app(
      "The queue of a Sekisho site: accepts jobs that their users have signed, has nodes chosen "
      "for "
      "them and agents run them.\nManual: docs/operations/qserver.md");
  DaemonCommand command;
  AddDaemonOptions(app, "qserver", command);
  bool print_nft = false;
  app.add_flag("--print-nft", print_nft, "Print the site's firewall rules for nftables and exit");
  if (const auto code = ReadCommandLine(app, argc, argv)) {
    return *code;
  }
  InitLog("qserver");

  const absl::StatusOr<Config> config = LoadConfig<Config>(command.config_path);
  if (!config.ok()) {
    return ReportStart(config.status());
  }
  if (const absl::Status status = CheckConfig(*config); !status.ok()) {
    return ReportStart(absl::Status(
        status.code(), command.config_path + ": " +
                           std::string(status.message().data(), status.message().size())));
  }
  if (command.check) {
    return 0;
  }
  if (print_nft) {
    const absl::StatusOr<std::string> rules = FirewallRules(*config);
    if (rules.ok()) {
      std::fputs(rules->c_str(), stdout);
    }
    return ReportStart(rules.status());
  }
  return ReportStart(Run(*config, command.config_path));
}

}  // namespace
}  // namespace sekisho::qserver

int main(int argc, char** argv) { return sekisho::qserver::Main(argc, argv); }
