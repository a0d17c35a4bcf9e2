// SPDX-License-Identifier: Apache-2.0
// The process beside a program that uses the relay: docs/protocol/11-nxproxy-shim.md.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "nxproxy/client/porter/arrivals.h"
#include "nxproxy/client/porter/encryption.h"
#include "nxproxy/client/porter/endpoints.h"
#include "nxproxy/client/porter/knocks.h"
#include "nxproxy/client/porter/local_server.h"
#include "nxproxy/client/porter/relays.h"
#include "nxproxy/client/porter/ways.h"

namespace sekisho::nxproxy::client {

class Porter {
 public:
  struct Handlers {
    std::function<void()> on_ready;                   // once: the relay knows us
    std::function<void(const Refusal&)> on_refused;   // it never will
    std::function<void(const std::string&)> on_line;  // for the user
  };

  Porter(Loop& loop, const wire::HostPort& server, BindPlan plan, Handlers handlers);
  ~Porter();
  Porter(const Porter&) = delete;
  Porter& operator=(const Porter&) = delete;

  void Start();
  void Leave();

  // $NXPROXY_PORTER.
  std::string Place() const;
  bool has_endpoints() const { return endpoints_ != nullptr && !endpoints_->empty(); }
  size_t refused_binds() const { return endpoints_ != nullptr ? endpoints_->refused_binds() : 0; }
  void SweepNow();

 private:
  struct Name {
    wire::Address peer;
    wire::Address self;
    bool is_v6 = false;
    int64_t since_ms = 0;
  };

  Session::Handlers SessionHandlers();
  void OnUp(bool is_resumed);
  void OnMessage(const wire::Message& message);
  void OnRequest(const std::shared_ptr<Asker>& asker);
  bool StartEncryption();
  void Connect(const std::shared_ptr<Asker>& asker);
  void DialPlain(const Way& way, const LocalRequest& request, LocalReply& reply);
  void DialEncrypted(const Way& way, const LocalRequest& request, LocalReply& reply);
  std::string MintTo(const std::string& target, const wire::Address& from,
                     const wire::Address& destination);
  static wire::Address SourceOf(const Way& way, const LocalRequest& request);
  Name DialledName(const LocalRequest& request) const;
  void Claim(Asker& asker);
  void Remember(const Pair& ends, const Name& name);
  void OnJoined(const wire::Opening& opening, int fd);
  void Knock(uint64_t endpoint, const wire::Address& peer, std::unique_ptr<Channel> stream,
             bool is_encrypted);
  void SweepLater();
  void AdjustSpares();
  void SayOnce(const std::string& line);

  Loop& loop_;
  const BindPlan plan_;
  const Handlers handlers_;
  Relays relays_;
  std::unique_ptr<Encryption> encryption_;  // if we or the site want it
  std::unique_ptr<Endpoints> endpoints_;
  std::unique_ptr<Ways> ways_;
  std::unique_ptr<Arrivals> arrivals_;
  Knocks knocks_;
  LocalServer server_;
  std::map<Pair, Name, PairLess> names_;
  std::map<uint64_t, std::string> dialled_;  // destination by ticket, for FAILED
  std::map<std::string, int64_t> said_;      // lines of the last seconds
  bool is_ready_ = false;
  Loop::TimerId sweep_ = 0;
};

}  // namespace sekisho::nxproxy::client
