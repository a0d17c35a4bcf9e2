// SPDX-License-Identifier: Apache-2.0
// The best way to a destination: direct, or through the relay.  docs/protocol/11-nxproxy-shim.md,
// "connect".
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "nxproxy/client/porter/interfaces.h"
#include "nxproxy/client/porter/session.h"

namespace sekisho::nxproxy::client {

struct Way {
  enum class Kind { kDirect, kInside, kRelay, kRefused } kind = Kind::kDirect;
  wire::Address inside;  // kInside: dial this instead
  std::string target;    // kRelay, kInside: for the preface
  uint64_t endpoint = 0;  // kRelay, kInside
  bool is_ours = false;       // kRelay, kInside: of the same job or subject
  bool is_encrypted = false;  // the endpoint speaks nothing else
  bool is_unknown = false;    // kDirect, kRefused: the relay knows of nobody there
  bool is_neighbour = false;  // kDirect: somebody of our own site, as the relay knows
  std::string label;          // of the endpoint, if it is ours
  std::string site;           // kRelay: where it is, if the relay knows
  Refusal refusal;       // kRefused
};

// What the answer to RESOLVE means for `destination`, asked from `site` ("": not known);
// `is_relay`: it is an address at the relay, `is_near`: one of our own networks.  Pure.
struct Question {
  wire::Address destination;
  std::string site;
  bool is_relay = false;
  bool is_near = false;
};
Way WayOf(const Question& question, const wire::Message& answer);

constexpr uint64_t kOthers = 256;  // of the job, that may come along with an answer

class Ways {
 public:
  using OnWay = std::function<void(const Way&)>;

  Ways(Loop& loop, Session& session, const wire::Address& relay, std::string site)
      : loop_(loop), session_(session), relay_(relay), site_(std::move(site)) {}

  void Find(const wire::Address& destination, OnWay on_way);
  void Learn(const wire::Message& resolved);  // what came along with an answer
  void Forget() {
    known_.clear();
    others_due_ms_ = 0;
  }

 private:
  struct Known {
    Way way;
    int64_t until_ms = 0;
  };
  Question QuestionOf(const wire::Address& destination, const Interfaces& interfaces) const;
  void Keep(const Question& question, const wire::Message& answer);

  Loop& loop_;
  Session& session_;
  const wire::Address relay_;
  const std::string site_;
  std::map<std::string, Known> known_;
  int64_t others_due_ms_ = 0;
};

}  // namespace sekisho::nxproxy::client
