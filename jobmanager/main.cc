// SPDX-License-Identifier: Apache-2.0
// sekisho-jobmanager: the jobs of one account, started by the gatekeeper: docs/operations/jobmanager.md.
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <thread>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/daemon.h"
#include "common/event_store.h"
#include "common/identity/credential.h"
#include "common/log.h"
#include "common/metrics.h"
#include "common/refusal.h"
#include "common/retention.h"
#include "common/rpc_window.h"
#include "common/tls/client_tls.h"
#include "jobmanager/config.pb.h"
#include "jobmanager/handover.h"
#include "jobmanager/jobs.h"
#include "jobmanager/leader.h"
#include "jobmanager/queue_server.h"
#include "jobmanager/service.h"

namespace sekisho::jobmanager {
namespace {

constexpr int kMessageBytesMax = 4 << 20;
constexpr size_t kMemoryMost = 48 << 20;  // for what has come from the queue server and is not taken
constexpr std::chrono::milliseconds kDrain{2'000};

struct Arguments {
  std::string account;
  std::string state;
  int control = -1;
  int calls = -1;
};

absl::StatusOr<identity::Credential> CredentialOf(const proto::Handover& handover) {
  return identity::ParseCredential(handover.certificate_pem(), handover.key_pem(), "handover");
}

tls::ClientTls QueueServerTls(const Config& config, const identity::Credential& credential) {
  return tls::MakeClientTls(
      credential, OrDefault(config.ca_directory(), "/etc/grid-security/certificates"),
      {.host = config.qserver().substr(0, config.qserver().rfind(':')), .subject = config.qserver_subject()});
}

std::shared_ptr<grpc::Channel> DialQueueServer(const Config& config, const tls::ClientTls& client) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 3'000);  // one attempt: a closed pinhole is silent
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 3'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 6'000);  // a silent pinhole is found within eleven seconds
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  rpc::SetWindow(arguments);
  // On a busy machine a ping takes long, and gRPC believes that the queue server is far: without a bound it lets a file that
  // is read slowly gather here.
  arguments.SetResourceQuota(grpc::ResourceQuota("queue server").Resize(kMemoryMost));
  return grpc::CreateCustomChannel(config.qserver(), client.credentials, arguments);
}

// One jobmanager at a time uses the state; the one before us may take a moment to end.
absl::Status Lock(const std::string& state) {
  const std::string path = state + "/lock";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  for (int tries = 0; fd >= 0 && tries < 50; ++tries) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
      return absl::OkStatus();  // kept until we end
    }
    usleep(100'000);
  }
  return absl::FailedPreconditionError(path + ": in use by another jobmanager");
}

// The gatekeeper closes the connection when its calls are over.  If we did, as gRPC does after a
// last answer, what it still writes of a call (an end, a window) would find nobody (EPIPE), and its
// gRPC would lose with the connection every answer that it has not read yet.
void WaitForClose(int calls) {
  pollfd end{.fd = calls, .events = POLLRDHUP, .revents = 0};
  while (poll(&end, 1, static_cast<int>(kDrain.count())) < 0 && errno == EINTR) {
  }
}

absl::Status Run(const Config& config, const Arguments& arguments) {
  GiveMemoryBack();
  ASSIGN_OR_RETURN(const Retention retention, MakeRetention(config.keep_ended_days()));
  ASSIGN_OR_RETURN(const proto::Handover handover, ReceiveHandover(arguments.control));
  RETURN_IF_ERROR(Lock(arguments.state));

  Loop& loop = ProcessLoop();
  ASSIGN_OR_RETURN(const auto store, EventStore::Open(loop, arguments.state + "/jobs.db"));
  ASSIGN_OR_RETURN(identity::Credential own, CredentialOf(handover));
  tls::ClientTls client = QueueServerTls(config, own);
  QueueServer queue(loop, {.site = config.site(), .address = config.qserver(), .account = arguments.account},
                    [&] { return DialQueueServer(config, client); },
                    [&client] { return client.server->Get().status(); });
  Jobs jobs(loop, {config.site(), handover.gatekeeper_subject()}, *store, queue, retention);
  RETURN_IF_ERROR(jobs.Load());
  jobs.Start();

  // To the gatekeepers of other sites, and to our own, by the same credential: what lets a leader in is its passage.
  Leaders leaders(loop, *store, arguments.state + "/leads", [&](const std::string& address, const std::string& subject) {
    const tls::ClientTls gatekeeper =
        tls::MakeClientTls(own, OrDefault(config.ca_directory(), "/etc/grid-security/certificates"),
                           {.host = address.substr(0, address.rfind(':')), .subject = subject});
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 5'000);  // a silent site is found within ten seconds
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
    rpc::SetWindow(arguments);
    return grpc::CreateCustomChannel(address, gatekeeper.credentials, arguments);
  });
  RETURN_IF_ERROR(leaders.Resume());

  Service service(loop, jobs, leaders, handover.token(), {handover.service().begin(), handover.service().end()});
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMessageBytesMax);
  rpc::SetWindow(builder);
  // The gatekeeper is not far, and what it sends of a file is not to gather here, as it does not there.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!server) {
    return absl::InternalError("the gRPC server does not start");
  }
  const int calls = fcntl(arguments.calls, F_DUPFD_CLOEXEC, 0);  // gRPC closes its own
  CHECK(calls >= 0);
  grpc::AddInsecureChannelFromFd(server.get(), arguments.calls);
  RETURN_IF_ERROR(TellReady(arguments.control));
  // Many of them run on one host: each at a socket of its own.
  const std::string metrics = config.metrics() == "none" ? "none" : "unix:" + arguments.state + "/metrics";
  ServeMetrics(loop, "jobmanager", metrics, [&](Metrics& figures) {
    figures.Gauge("jobs", "Jobs that are kept, ended ones too.", double(jobs.book().size()));
    figures.Gauge("jobs_alive", "Jobs that wait or run inside.", double(jobs.book().AliveInside().size()));
    figures.Gauge("position", "The queue server's number of the last event heard.", double(jobs.book().position()));
    for (const auto& [key, flow] : leaders.traffic().flows()) {
      figures.Counter("world_messages_total", "Between leaders here and the parts of their worlds, by kind.", double(flow.messages),
                      {{"direction", key.first}, {"kind", key.second}});
    }
    for (const auto& [key, flow] : leaders.traffic().flows()) {
      figures.Counter("world_bytes_total", "Of these messages.", double(flow.bytes), {{"direction", key.first}, {"kind", key.second}});
    }
  });
  spdlog::info("jobmanager ready account={} jobs={}", arguments.account, jobs.book().size());

  // What is in memory is ahead of the disk then, and the queue server's events would be taken for stored:
  // the gatekeeper starts us again, and we go on from what is there.
  co_spawn(
      loop, [&]() -> awaitable<absl::Status> { co_return co_await store->Failed(); },
      [](const std::exception_ptr& thrown, const absl::Status& status) {
        Vital("its store")(thrown);
        if (!status.ok()) {
          spdlog::critical("cannot store events, stopping: {}", Message(status));
          std::_Exit(74);
        }
      });

  // Until SIGTERM, or until the gatekeeper is gone.
  bool is_stopping = false;
  std::thread drain;
  const auto stop = [&] {
    if (!std::exchange(is_stopping, true)) {
      TellStopping(arguments.control);
      drain = std::thread([&] {
        WaitForClose(calls);
        server->Shutdown(std::chrono::system_clock::now());
        asio::post(loop, [&] {
          co_spawn(
              loop, [&]() -> awaitable<void> { (co_await store->Flush()).IgnoreError(); },
              [&](const std::exception_ptr& thrown) {
                Logged("the last flush")(thrown);
                loop.stop();
              });
        });
      });
    }
  };
  co_spawn(loop, WaitForStop(loop), [&](const std::exception_ptr& thrown) {
    Vital("its signals")(thrown);
    stop();
  });
  const auto renew = [&](const proto::Handover& later) {
    auto credential = CredentialOf(later);
    if (!credential.ok()) {
      spdlog::error("the gatekeeper's credential cannot be used: {}", Message(credential.status()));
      return;
    }
    own = *std::move(credential);
    client = QueueServerTls(config, own);
    queue.Redial();
  };
  co_spawn(loop, AttendGatekeeper(loop, arguments.control, renew), [&](const std::exception_ptr& thrown) {
    Vital("its gatekeeper")(thrown);
    stop();
  });
  loop.run();
  drain.join();
  // All that matters is on disk.  Calls to the queue server are still under way, and gRPC's threads would
  // meet what destructors leave behind: end as after a crash, which any moment must allow anyway.
  spdlog::info("jobmanager stopped account={}", arguments.account);
  std::_Exit(0);
}

}  // namespace
}  // namespace sekisho::jobmanager

int main(int argc, char** argv) {
  CLI::App app(
      "The jobs of one account at a site.  Started by sekisho-gatekeeper, not by hand.\n"
      "Manual: docs/operations/jobmanager.md");
  sekisho::DaemonCommand command;
  sekisho::AddDaemonOptions(app, "jobmanager", command);
  sekisho::jobmanager::Arguments arguments;
  app.add_option("--account", arguments.account, "Account whose jobs these are");
  app.add_option("--state", arguments.state, "Directory of the account's job database");
  app.add_option("--control", arguments.control, "Descriptor that leads to the gatekeeper");
  app.add_option("--calls", arguments.calls, "Descriptor on which the gatekeeper's calls come");
  if (const auto code = sekisho::ReadCommandLine(app, argc, argv)) {
    return *code;
  }
  sekisho::InitLog("jobmanager");

  const auto config = sekisho::LoadConfig<sekisho::jobmanager::Config>(command.config_path);
  if (!config.ok() || command.check) {
    return sekisho::ReportStart(config.status());
  }
  if (arguments.control < 0 || arguments.calls < 0 || arguments.account.empty() ||
      arguments.state.empty()) {
    return sekisho::ReportStart(sekisho::Refuse(absl::StatusCode::kInvalidArgument, 0,
                                                "--account, --state, --control and --calls are needed",
                                                "start sekisho-gatekeeper instead"));
  }
  return sekisho::ReportStart(sekisho::jobmanager::Run(*config, arguments));
}
