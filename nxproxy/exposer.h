// SPDX-License-Identifier: Apache-2.0
// The endpoints of `expose`: this relay as a client of its upstream.  Binds them there, keeps
// spares dialled ahead, leads each peer to its target inside; re-dials, and takes back the same
// endpoints.  One that is refused is asked for again by itself, and holds up no other.
// exposer.cc: the control connection; exposer_doors.cc: the data connections.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "nxproxy/control.h"
#include "nxproxy/exposed_file.h"
#include "nxproxy/exposure.h"
#include "nxproxy/net.h"
#include "nxproxy/relay.h"

namespace sekisho::nxproxy {

class Exposer {
 public:
  static absl::StatusOr<std::unique_ptr<Exposer>> Make(Poller& poller, const Config& config,
                                                       Relay& relay);
  ~Exposer();

  void Tick(int64_t now_ms);
  void Drain();

 private:
  struct Door;   // a data connection to the upstream, until a peer takes it
  struct Inner;  // a target inside that is being dialled

  Exposer(Poller& poller, const Config& config, Relay& relay);
  void Dial();
  void Established();
  void Received(const wire::Message& message);
  void Lost(const std::string& why);
  void BindDue();
  void Refused(Exposure& exposure, const wire::Message& error);
  void Remember(const Exposure& exposure);
  void DialDoor(uint64_t stream);
  void Refill();
  void DoorEvent(Door& door);
  void Opened(Door& door, const wire::Opening& opening);
  void Dialled(Inner& inner);

  Poller& poller_;
  const Config& config_;
  Relay& relay_;
  TlsContext tls_;
  std::vector<Exposure> exposures_;
  size_t spares_wanted_ = 0;
  std::string file_;
  std::map<std::string, Bound> bound_;

  wire::Address upstream_;
  Descriptor dialling_;
  class DialHandler;
  std::unique_ptr<DialHandler> dial_handler_;
  std::unique_ptr<Control> control_;
  uint64_t session_ = 0;
  std::string key_;
  uint64_t counter_ = 0;
  uint32_t next_id_ = 1;
  std::unordered_map<Door*, std::unique_ptr<Door>> doors_;
  std::unordered_map<Inner*, std::unique_ptr<Inner>> inners_;
  std::vector<std::shared_ptr<void>> dead_;
  int64_t now_ms_ = NowMs();
  int64_t dial_at_ms_ = 0;
  BackOff back_off_ = Exposure::kBackOff;
  bool has_been_up_ = true;  // since the last loss; the first try counts as that
  bool is_greeted_ = false;  // this connection has had its WELCOME
  int64_t pinged_ms_ = 0;
  int64_t heartbeat_ms_ = 20'000;
  size_t spares_ = 0;
  int64_t door_after_ms_ = 0;  // no spares before: the last could not be dialled
  bool is_draining_ = false;
};

}  // namespace sekisho::nxproxy
