// SPDX-License-Identifier: Apache-2.0
// The client's standing with one relay: dials, greets, resumes, mints tickets.
// docs/protocol/10-nxproxy.md.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "nxproxy/client/porter/control.h"
#include "nxproxy/wire/preface.h"

namespace sekisho::nxproxy::client {

// Why the relay will not have us, in words for the user.
struct Refusal {
  wire::Code code = wire::Code::kOk;
  std::string words;
  std::string remedy;
  std::string rule;
};
std::string ToText(const Refusal& refusal);
Refusal RefusalOf(const wire::Message& error);

class Session {
 public:
  using OnAnswer = std::function<void(const wire::Message&)>;
  struct Handlers {
    // `is_resumed`: the relay still has our endpoints.
    std::function<void(bool is_resumed)> on_up;
    std::function<void(const std::string& why)> on_down;  // it is being re-dialled
    std::function<void(const Refusal&)> on_refused;       // it is not
    OnAnswer on_message;                                  // what nobody asked for
  };

  // To the relay at `server`, through `via` (an inner relay's session, already up) if given.
  // `beat_most_ms`: it asks for a word at least so often; after three without one the relay is
  // away.
  Session(Loop& loop, wire::HostPort server, Session* via, std::string program,
          int64_t beat_most_ms, Handlers handlers);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Start();
  void Leave();  // BYE; then the relay has nothing of ours

  bool is_up() const { return is_up_; }
  const wire::Message& welcome() const { return welcome_; }
  const std::string& server_text() const { return server_text_; }
  // Where data connections go: the first relay of the row.
  const wire::Address& dial_address() const {
    return via_ != nullptr ? via_->dial_address() : place_;
  }

  // Answered at once with ERROR if the connection is down or breaks.
  void Ask(wire::Message message, OnAnswer on_answer);
  void Tell(wire::Message message);

  // The bytes that a new data connection begins with, all relays of the row together; "" if no
  // session stands.
  std::string MintConnect(const std::string& target, const wire::Address& from, bool wants_opening);
  std::string MintAccept(uint64_t stream);
  uint64_t last_counter() const { return counter_; }

 private:
  // A connection to the relay, as our credential is now; nullptr and `error` if there can be none.
  std::unique_ptr<Control> MakeControl(uint64_t number, std::string& error);
  void Dial();
  void Renew();
  void EndRenewal();
  void Greet(Control& control);
  bool MayComeAgain(uint64_t code) const;
  void OnControlClosed(uint64_t number, const std::string& why);
  void OnMessage(const wire::Message& message);
  void OnWelcome(const wire::Message& message);
  void OnClosed(const std::string& why);
  void Beat();
  void Drop();
  void FailAll(const std::string& why);
  void FailAllBut(const std::vector<wire::Message>& held);
  std::string Mint(wire::Preface preface);

  Loop& loop_;
  const wire::HostPort server_;
  const std::string server_text_;
  Session* const via_;
  const std::string program_;
  const int64_t beat_most_ms_;
  const Handlers handlers_;
  wire::Address place_;
  ContextPtr context_;
  std::unique_ptr<Control> control_;
  // Its successor, as whom the session goes on with a renewed credential; what is asked meanwhile
  // waits.
  std::unique_ptr<Control> renewing_;
  uint64_t control_number_ = 0;
  uint64_t renewing_number_ = 0;
  std::string lost_;  // why control_ has ended, if it did so under a renewal
  std::vector<wire::Message> held_;
  std::string stamp_;
  Loop::TimerId renewal_limit_ = 0;
  wire::Message welcome_;
  bool is_up_ = false;
  bool is_over_ = false;
  int64_t backoff_ms_ = 0;
  std::minstd_rand random_{std::random_device{}()};  // for jitter
  uint64_t counter_ = 0;
  uint32_t next_id_ = 1;
  std::map<uint32_t, OnAnswer> waiting_;
  Loop::TimerId redial_ = 0;
  Loop::TimerId beat_ = 0;
};

}  // namespace sekisho::nxproxy::client
