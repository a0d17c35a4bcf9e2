// SPDX-License-Identifier: Apache-2.0
// sekisho-allocator: which nodes for which job.  docs/operations/allocator.md.
#include <filesystem>
#include <iostream>

#include <CLI/CLI.hpp>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include "allocator/config.pb.h"
#include "allocator/decide_command.h"
#include "allocator/service.h"
#include "common/daemon.h"
#include "common/log.h"
#include "common/metrics.h"
#include "common/refusal.h"
#include "common/rpc_window.h"

namespace sekisho::allocator {
namespace {

// Only this user's processes may ask: the directory is ours and closed, and so is the socket.
absl::Status PrepareSocket(const std::string& target) {
  const std::string prefix = "unix:";
  if (target.rfind(prefix, 0) != 0) {
    return absl::InvalidArgumentError("listen: expected unix:PATH, saw \"" + target + "\"");
  }
  const std::filesystem::path path(target.substr(prefix.size()));
  std::error_code error;
  if (!std::filesystem::exists(path.parent_path(), error)) {
    std::filesystem::create_directories(path.parent_path(), error);
    chmod(path.parent_path().c_str(), 0700);
  }
  std::filesystem::remove(path, error);  // a predecessor's
  return error ? absl::UnavailableError(path.string() + ": " + error.message()) : absl::OkStatus();
}

absl::Status Serve(const Config& config, const std::string& inventory_path, Inventory inventory,
                   Policy policy) {
  const std::string listen = OrDefault(config.listen(), "unix:/run/sekisho/allocator/socket");
  RETURN_IF_ERROR(PrepareSocket(listen));
  Loop& loop = ProcessLoop();
  Service service(loop, std::move(inventory), policy,
                  OrDefault(config.topology(), "/var/lib/sekisho/qserver/topology.edges"));
  umask(0177);  // the socket: 0600
  grpc::ServerBuilder builder;
  int is_bound = 0;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &is_bound);
  builder.RegisterService(&service);
  builder.SetMaxReceiveMessageSize(-1);
  rpc::SetWindow(builder);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || is_bound == 0) {
    return absl::UnavailableError("cannot listen on " + listen);
  }
  ServeMetrics(loop, "allocator", OrDefault(config.metrics(), "127.0.0.1:7522"), [&](Metrics& metrics) {
    metrics.Counter("questions_total", "Questions answered.", double(service.questions()));
    metrics.Counter("decisions_total", "Jobs decided about, each time anew.", double(service.decisions()));
    metrics.Gauge("resources", "Resources of the inventory.", double(service.inventory().resources.size()));
  });
  spdlog::info("serving listen={} inventory={} policy={}", listen, inventory_path, policy.name);
  NotifyReady();

  const auto reload = [&] {
    absl::StatusOr<Inventory> changed = LoadInventory(inventory_path);
    if (changed.ok()) {
      service.SetInventory(*std::move(changed));
      spdlog::info("inventory read again inventory={}", inventory_path);
    } else {
      spdlog::error("the old inventory stays in force: {}", Message(changed.status()));
    }
  };
  co_spawn(loop, WaitForStop(loop, reload), [&](const std::exception_ptr& thrown) {
    Vital("its signals")(thrown);
    loop.stop();
  });
  loop.run();
  std::_Exit(0);  // it has nothing to wind down
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Decides which nodes a job gets.  A daemon for the queue server or, with --decide, a trial:\n"
      "  sekisho-allocator --inventory FILE --policy paper --decide\n"
      "reads processor counts from stdin and prints for each `RESOURCE NODE...`, `RESOURCE "
      "(waits)` or\n"
      "`never: why`; jobs accumulate, none ends.\nManual: docs/operations/allocator.md");
  DaemonCommand command;
  AddDaemonOptions(app, "allocator", command);
  std::string inventory_path, policy_name, topology_path;
  bool decide = false;
  app.add_option("--inventory", inventory_path,
                 "The site's resources: the cluster table or JSON (default: the configuration's)");
  app.add_option("--policy", policy_name, "\"paper\", \"load\" or \"near\" (default: the configuration's)");
  app.add_option("--topology", topology_path,
                 "The site's network, for --decide by \"near\" (default: the configuration's)");
  app.add_flag("--decide", decide,
               "Decide for the processor counts on stdin; needs no configuration");
  if (const auto code = ReadCommandLine(app, argc, argv)) {
    return *code;
  }
  InitLog("allocator");

  Config config;
  if (const absl::Status status = LoadConfigInto(command.config_path, config);
      !status.ok() && !(decide && absl::IsNotFound(status))) {
    return ReportStart(status);
  }
  if (inventory_path.empty())
    inventory_path = OrDefault(config.inventory(), "/etc/sekisho/inventory");
  if (policy_name.empty()) policy_name = OrDefault(config.policy(), "paper");
  if (topology_path.empty()) topology_path = config.topology();
  const absl::StatusOr<Policy> policy = FindPolicy(policy_name);
  if (!policy.ok()) {
    return ReportStart(policy.status());
  }
  absl::StatusOr<Inventory> inventory = LoadInventory(inventory_path);
  if (!inventory.ok()) {
    return ReportStart(inventory.status());
  }
  if (command.check) {
    return 0;
  }
  if (decide) {
    const std::optional<topology::NamedTree> network = TreeFile(topology_path).Changed();
    const Nearness nearness = network ? FindNearness(*inventory, *network) : Nearness{};
    DecideCounts(*inventory, *policy, std::cin, std::cout, nearness);
    return 0;
  }
  return ReportStart(Serve(config, inventory_path, *std::move(inventory), *policy));
}

}  // namespace
}  // namespace sekisho::allocator

int main(int argc, char** argv) { return sekisho::allocator::Main(argc, argv); }
