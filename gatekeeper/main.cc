// SPDX-License-Identifier: Apache-2.0
// sekisho-gatekeeper, the front door of a site: docs/operations/gatekeeper.md.
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include "common/acceptor.h"
#include "common/daemon.h"
#include "common/identity/credential.h"
#include "common/identity/dn.h"
#include "common/log.h"
#include "common/metrics.h"
#include "common/refusal.h"
#include "common/tls/peer_verifier.h"
#include "gatekeeper/callers.h"
#include "gatekeeper/config.pb.h"
#include "gatekeeper/jobmanagers.h"
#include "gatekeeper/policy.h"
#include "gatekeeper/service.h"

namespace sekisho::gatekeeper {
namespace {

constexpr int kMessageBytesMax = 4 << 20;
constexpr int kCallsOfAConnection = 1024;     // at a time; more wait at their sender
constexpr size_t kMemoryMost = 256 << 20;     // for what has come and is not taken, of all connections
constexpr std::chrono::seconds kDrain{5};

// Of calls that are over.
struct Figures {
  std::map<std::string, uint64_t> calls;  // by status
  uint64_t bytes_in = 0;
  uint64_t bytes_out = 0;

  void Count(const AuditRecord& record) {
    ++calls[record.status];
    bytes_in += record.bytes_in;
    bytes_out += record.bytes_out;
  }
  void AddTo(Metrics& metrics) const {
    for (const auto& [status, count] : calls) {
      metrics.Counter("calls_total", "Calls that are over, by gRPC's code.", double(count), {{"code", status}});
    }
    metrics.Counter("bytes_total", "Bytes of messages.", double(bytes_in), {{"direction", "in"}});
    metrics.Counter("bytes_total", "", double(bytes_out), {{"direction", "out"}});
  }
};

int Or(int value, int fallback) { return value > 0 ? value : fallback; }

Admission::Limits LimitsOf(const Config::Limits& config) {
  return {.unfinished = static_cast<size_t>(Or(config.unfinished(), 1024)),
          .per_peer = static_cast<size_t>(Or(config.per_peer(), 1024)),
          .handshake = std::chrono::seconds(Or(config.handshake_s(), 10))};
}

absl::StatusOr<JobManagers::Options> JobManagersOf(const Config& config,
                                                   const identity::Credential& host) {
  const auto& given = config.jobmanager();
  JobManagers::Options options;
  options.program =
      OrDefault(given.program(), (std::filesystem::read_symlink("/proc/self/exe").parent_path() /
                                  "sekisho-jobmanager")
                                     .c_str());
  options.config = OrDefault(given.config(), "/etc/sekisho/jobmanager.json");
  options.state_directory = OrDefault(given.state_directory(), "/var/lib/sekisho/jobmanager");
  options.start_timeout = std::chrono::seconds(Or(given.start_timeout_s(), 10));
  ASSIGN_OR_RETURN(
      options.service,
      identity::LoadKeyPair(
          OrDefault(given.service_certificate(), "/etc/grid-security/jobmanagercert.pem"),
          OrDefault(given.service_key(), "/etc/grid-security/jobmanagerkey.pem")));
  options.handover.set_gatekeeper_subject(identity::SubjectText(*host.chain.front()));
  for (const auto& offered : Services(config)) {
    options.handover.add_service(offered.name());
  }
  return options;
}

void SetLimits(grpc::ServerBuilder& builder, const Config& config) {
  builder.SetMaxReceiveMessageSize(kMessageBytesMax);
  builder.SetResourceQuota(grpc::ResourceQuota("gatekeeper").Resize(kMemoryMost));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kCallsOfAConnection);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             Or(config.limits().handshake_s(), 10) * 1000);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 32 << 10);  // a leader's passage
  // What a call's other side does not take stays with its sender, but for so much, and what gRPC has seen go at once;
  // the quota above bounds all of it.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 256 << 10);
  // A connection without calls is closed: it counts against its address.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 5 * 60'000);
  // A client that vanished without a word is found within a minute.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
}

absl::Status Run(const Config& config) {
  // Read everything that can be wrong before anything is served.
  ASSIGN_OR_RETURN(const identity::Credential host,
                   identity::LoadHostCredential(config.host_certificate(), config.host_key()));
  Callers callers(OrDefault(config.grid_mapfile(), "/etc/grid-security/grid-mapfile"),
                  OrDefault(config.ca_directory(), "/etc/grid-security/certificates"),
                  identity::SubjectText(*host.chain.front()));
  RETURN_IF_ERROR(callers.Reload());
  AuditLog audit(OrDefault(config.audit_log(), "/var/log/sekisho/audit.log"));
  RETURN_IF_ERROR(audit.Open());
  ASSIGN_OR_RETURN(JobManagers::Options options, JobManagersOf(config, host));

  Loop& loop = ProcessLoop();
  Acceptor acceptor(loop, LimitsOf(config.limits()));
  const std::string address = OrDefault(config.listen(), "0.0.0.0:2119");
  RETURN_IF_ERROR(acceptor.Listen(address));
  options.handover.set_gatekeeper_address(
      address.substr(0, address.rfind(':') + 1) + std::to_string(acceptor.port()));
  JobManagers jobmanagers(loop, std::move(options));

  Figures figures;
  Service service(
      loop, config,
      {.identify = [&callers](const grpc::ServerContextBase& context) { return callers.Identify(context); },
       .authenticated = [&acceptor](const std::string& peer) { return acceptor.Finish(peer); },
       .hang_up = [&acceptor](const std::string& peer) { acceptor.HangUp(peer); },
       .can_audit = [&audit] { return audit.Flush(); },
       .connect = [&jobmanagers](std::string account) -> awaitable<absl::StatusOr<Service::Inside>> {
         CO_ASSIGN_OR_RETURN(auto channel, co_await jobmanagers.Get(account));
         co_return Service::Inside{std::move(channel), jobmanagers.TokenOf(account)};
       },
       .audit =
           [&audit, &figures](const AuditRecord& record) {
             figures.Count(record);
             if (const absl::Status status = audit.Write(record); !status.ok()) {
               spdlog::error("{}: {}", Message(status), AuditLine(record));
             }
           }});

  grpc::ServerBuilder builder;
  SetLimits(builder, config);
  builder.RegisterCallbackGenericService(&service);
  auto external = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      tls::ServerCredentials(host));
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!server) {
    return absl::InternalError("the gRPC server does not start");
  }
  acceptor.Run(std::move(external));
  ServeMetrics(loop, "gatekeeper", OrDefault(config.metrics(), "127.0.0.1:7520"), [&](Metrics& metrics) {
    metrics.Gauge("calls", "Calls in progress.", service.calls());
    figures.AddTo(metrics);
  });
  jobmanagers.StartLeading();
  spdlog::info("gatekeeper ready site={} port={}", config.site(), acceptor.port());
  NotifyReady();

  const auto reload = [&] {
    for (const absl::Status& status : {callers.Reload(), audit.Open()}) {
      if (!status.ok()) {
        spdlog::error("the last good version stays in force: {}", Printable(Message(status)));
      }
    }
    spdlog::info("reloaded");
  };
  std::thread drain;
  const auto serve = [&]() -> awaitable<void> {
    co_await WaitForStop(loop, reload);
    spdlog::info("stopping calls={}", service.calls());
    acceptor.Stop();
    service.Stop();
    // Shutdown blocks, and what it waits for needs this loop.
    Signal drained(loop);
    bool is_drained = false;
    drain = std::thread([&] {
      server->Shutdown(std::chrono::system_clock::now() + kDrain);
      asio::post(loop, [&] {
        is_drained = true;
        drained.Notify();
      });
    });
    while (!is_drained) {
      co_await drained.Wait();
    }
    co_await jobmanagers.Stop();
    loop.stop();
  };
  co_spawn(loop, serve, Vital("its signals"));
  loop.run();
  drain.join();
  if (const absl::Status status = audit.Flush(); !status.ok()) {
    spdlog::error("stopping, and lines of the audit log are in this log alone, behind \"audit log\" lines={}: {}",
                  audit.waiting(), Message(status));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace sekisho::gatekeeper

int main(int argc, char** argv) {
  CLI::App app("The front door of a site: one TLS port.  Authenticates callers, maps them to accounts and "
               "forwards their calls to the account's jobmanager.\n"
               "Manual: docs/operations/gatekeeper.md");
  sekisho::DaemonCommand command;
  sekisho::AddDaemonOptions(app, "gatekeeper", command);
  if (const auto code = sekisho::ReadCommandLine(app, argc, argv)) {
    return *code;
  }
  sekisho::InitLog("gatekeeper");
  sekisho::RaiseDescriptorLimit();
  sekisho::GiveMemoryBack();

  const auto config = sekisho::LoadConfig<sekisho::gatekeeper::Config>(command.config_path);
  if (!config.ok() || command.check) {
    return sekisho::ReportStart(config.status());
  }
  return sekisho::ReportStart(sekisho::gatekeeper::Run(*config));
}
