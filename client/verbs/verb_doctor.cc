// SPDX-License-Identifier: Apache-2.0
// sekisho doctor: walks every hop from here to the tasks and says which fails and what to do.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "client/site/exit_code.h"
#include "client/site/harmless.h"
#include "client/site/reach.h"
#include "client/site/site_call.h"
#include "client/verbs/verbs.h"

namespace sekisho::client {
namespace {

constexpr int kConnectTimeMs = 5000;

struct DoctorOptions {
  std::string site;
  bool is_json = false;
};

// Prints hops as they come; remembers whether one failed.
class Walk {
 public:
  explicit Walk(bool is_json) : is_json_(is_json) {}

  void Add(const std::string& name, const Step& step, const std::string& remedy) {
    proto::Hop hop;
    hop.set_name(name);
    hop.set_is_ok(step.is_ok);
    hop.set_detail(step.detail);
    hop.set_milliseconds(step.milliseconds);
    hop.set_remedy(step.is_ok ? "" : remedy);
    Add(hop);
  }
  void Add(const proto::Hop& hop) {
    has_failed_ = has_failed_ || !hop.is_ok();
    if (is_json_) {
      json_.push_back({{"hop", hop.name()},
                       {"ok", hop.is_ok()},
                       {"detail", hop.detail()},
                       {"remedy", hop.remedy()},
                       {"ms", hop.milliseconds()}});
      return;
    }
    fmt::print("{}  {:<12} {:>8.1f} ms  {}\n", hop.is_ok() ? "ok  " : "FAIL", Harmless(hop.name()),
               hop.milliseconds(), Harmless(hop.detail()));
    if (!hop.remedy().empty()) {
      fmt::print("      -> {}\n", Harmless(hop.remedy()));
    }
    std::fflush(stdout);
  }
  bool has_failed() const { return has_failed_; }
  void Finish() const {
    if (is_json_) {
      fmt::print("{}\n", json_.dump(2));
    } else {
      fmt::print("{}\n", has_failed_ ? "something is wrong" : "all is well");
    }
  }

 private:
  const bool is_json_;
  bool has_failed_ = false;
  nlohmann::json json_ = nlohmann::json::array();
};

awaitable<int> AskSite(Session& session, Walk& walk) {
  proto::DiagnoseRequest request;
  const int64_t start = NowMs();
  auto hops = rpc::Start<rpc::ClientReader<proto::Hop>>(
      session.loop(), session.Options(std::chrono::seconds(30)),
      [&](auto& call) { session.stub().async()->Diagnose(&call.context(), &request, &call); });
  proto::Hop hop;
  while (co_await hops->Read(hop)) {
    walk.Add(hop);
  }
  if (const auto status = co_await hops->Finish(); !status.ok()) {
    const bool is_refused = ExitCodeOf(status) == kExitRefused;
    walk.Add(is_refused ? "mapping" : "jobmanager",
             {false, Message(status), static_cast<double>(NowMs() - start)}, Remedy(status));
    co_return ExitCodeOf(status);
  }
  co_return 0;
}

int Examine(const Target& target, Walk& walk) {
  const Step name = LookUpName(target.contact);
  walk.Add("name", name, "check the host's name in the contact or in sites.json");
  if (!name.is_ok) {
    return kExitFailed;
  }
  const Step tcp = ConnectTcp(target.contact, kConnectTimeMs);
  walk.Add("TCP", tcp, "the gatekeeper may be down, or a firewall is in the way: ask the site's administrator");
  if (!tcp.is_ok) {
    return kExitFailed;
  }
  Loop& loop = NewLoop();
  const int64_t start = NowMs();
  const auto session = Session::Open(loop, target);
  const double spent = static_cast<double>(NowMs() - start);
  if (!session.ok()) {
    walk.Add("TLS", {false, Message(session.status()), spent}, Remedy(session.status()));
    return ExitCodeOf(session.status());
  }
  walk.Add("TLS", {true, "the gatekeeper is " + (*session)->gatekeeper_subject(), spent}, "");
  const int code = RunOnLoop(loop, AskSite(**session, walk));
  return code != 0 ? code : (walk.has_failed() ? kExitFailed : 0);
}

int DoctorVerb(const DoctorOptions& options) {
  const auto sites = Sites::Load();
  if (!sites.ok()) {
    return Report(sites.status());
  }
  const auto target = sites->Resolve(options.site);
  if (!target.ok()) {
    return Report(target.status());
  }
  Walk walk(options.is_json);
  const int exit_code = Examine(*target, walk);
  walk.Finish();
  return exit_code;
}

}  // namespace

void AddDoctorVerb(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<DoctorOptions>();
  auto* verb = app.add_subcommand("doctor", "Walk every hop to a site and say which fails and what to do");
  verb->add_option("SITE", options->site, "Site name or contact")->required();
  verb->add_flag("--json", options->is_json, "Print JSON");
  verb->callback([options, &invocation] { invocation.exit_code = DoctorVerb(*options); });
}

}  // namespace sekisho::client
