// SPDX-License-Identifier: Apache-2.0
// The process beside a program that uses the relay: docs/protocol/11-nxproxy-shim.md.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "nxproxy/client/porter/encryption.h"
#include "nxproxy/client/porter/gate.h"
#include "nxproxy/client/porter/knocks.h"
#include "nxproxy/client/porter/link_records.h"
#include "nxproxy/client/porter/local_server.h"
#include "nxproxy/client/porter/reversal.h"
#include "nxproxy/client/porter/unreached.h"

namespace sekisho::nxproxy::client {

class Porter {
 public:
  struct Handlers {
    std::function<void()> on_ready;                   // once: a relay knows us
    std::function<void(const Refusal&)> on_refused;   // none ever will
    std::function<void(const std::string&)> on_line;  // for the user
    std::function<void(const std::string&)> on_unreached;  // why the command is to end; only if its plan says so
  };

  Porter(Loop& loop, const std::vector<wire::HostPort>& servers, BindPlan plan, Handlers handlers);
  ~Porter();
  Porter(const Porter&) = delete;
  Porter& operator=(const Porter&) = delete;

  void Start();
  void Leave();

  // $NXPROXY_PORTER.
  std::string Place() const;
  bool has_endpoints() const;
  size_t refused_binds() const;
  void SweepNow();
  // The command has ended by itself.  Why it failed, if it did and that is known: whom it could not reach.
  std::string OnCommandEnded() {
    const std::string why = unreached_ != nullptr ? unreached_->sentence() : "";
    unreached_.reset();
    return why;
  }

 private:
  struct Name {
    wire::Address peer;
    wire::Address self;
    bool is_v6 = false;
    int64_t since_ms = 0;
  };

  Gate::Handlers GateHandlers();
  void OnUp(Gate& gate, bool is_resumed);
  void OnDown(Gate& gate, const Refusal& refusal);
  void OnRequest(const std::shared_ptr<Asker>& asker);
  bool StartEncryption();
  void Publish(const std::shared_ptr<Asker>& asker);
  // At one gate after another, from a new one each time, until one knows the destination.
  void Connect(const std::shared_ptr<Asker>& asker, size_t first, size_t tried);
  void Dial(const std::shared_ptr<Asker>& asker, Gate& gate, const Way& way);
  // By the far end, if it can reach us; else, and until that is known, as plain.
  void DialReversed(const std::shared_ptr<Asker>& asker, Gate& gate, const Way& way);
  void Invite(const std::shared_ptr<Asker>& asker, Gate& gate, const Way& way);
  void DialPlain(Gate& gate, const Way& way, const LocalRequest& request, LocalReply& reply);
  void DialEncrypted(Gate& gate, const Way& way, const LocalRequest& request, LocalReply& reply);
  static wire::Address SourceOf(const Way& way, const LocalRequest& request);
  Name DialledName(const LocalRequest& request) const;
  void Claim(Asker& asker);
  void Remember(const Pair& ends, const Name& name);
  void OnJoined(Gate& gate, const wire::Opening& opening, int fd);
  void Knock(Gate& gate, const wire::Opening& opening, std::unique_ptr<Channel> stream,
             bool is_encrypted);
  void SweepLater();
  void ForgetNames();
  void SayOnce(const std::string& line);
  void OnFailed(const std::string& destination, const std::string& why);

  Loop& loop_;
  const BindPlan plan_;
  const Handlers handlers_;
  std::vector<std::unique_ptr<Gate>> gates_;
  std::set<const Gate*> failed_;  // before any was up
  size_t next_gate_ = 0;
  std::unique_ptr<Encryption> encryption_;  // if we or the site want it
  std::unique_ptr<Reversal> reversal_;      // if we may be reached
  LinkRecords records_;
  Knocks knocks_;
  LocalServer server_;
  std::map<Pair, Name, PairLess> names_;
  std::map<std::string, int64_t> said_;      // lines of the last seconds
  int64_t tried_until_ms_ = 0;  // relays that do not answer, if their being away ends the command
  int64_t others_back_ms_ = 0;  // until then others of the job may still be on their way back to the relay
  std::vector<std::function<void()>> waiting_;  // connections that a program asked for while no relay was up
  std::unique_ptr<Unreached> unreached_;     // if that ends the command
  bool is_ready_ = false;
  Loop::TimerId sweep_ = 0;
};

}  // namespace sekisho::nxproxy::client
