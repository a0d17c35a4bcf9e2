// SPDX-License-Identifier: Apache-2.0
// Chains that were judged good, remembered by the SHA-256 of the bytes that were presented: a known chain
// costs a hash instead of parsing and a signature for each of its certificates and revocation lists.  What is
// said with a chain (mapping, freshness, replay, a signature by its key) is judged each time, by others.
//
// A chain is remembered for at most five minutes, never beyond the end of one of its certificates or of any
// revocation list, and not past a change of the authorities.  Belongs to one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>

#include "common/identity/chain.h"

namespace sekisho::identity {

class JudgedChains {
 public:
  static constexpr std::chrono::seconds kRememberedFor = std::chrono::minutes(5);
  static constexpr size_t kRememberedMax = 4096;

  struct Judged {
    Identity identity;
    KeyPtr key;  // the leaf's public key
  };

  JudgedChains(std::shared_ptr<const TrustStore> trust, Purpose purpose)
      : trust_(std::move(trust)), purpose_(purpose) {}
  JudgedChains(const JudgedChains&) = delete;
  JudgedChains& operator=(const JudgedChains&) = delete;

  // `presented` is all the bytes of the chain that `parse` makes, so joined that no other chain has the
  // same.  The pointer holds until the next call of any function.
  std::variant<const Judged*, Refusal> Judge(const std::string& presented,
                                             const std::function<absl::StatusOr<Chain>()>& parse,
                                             Time now);
  // As JudgeChain judges what was signed before.  Nothing is remembered.
  std::variant<const Judged*, Refusal> JudgeThen(const std::function<absl::StatusOr<Chain>()>& parse, Time now,
                                                 Time signed_at);

  // New authorities or revocation lists: everything remembered is judged anew.
  void SetTrust(std::shared_ptr<const TrustStore> trust);

  const TrustStore& trust() const { return *trust_; }
  size_t size() const { return remembered_.size(); }

 private:
  struct Entry {
    Judged judged;
    Time from;
    Time until;
  };

  std::shared_ptr<const TrustStore> trust_;
  const Purpose purpose_;
  std::unordered_map<std::string, Entry> remembered_;  // by SHA-256 of what was presented
  Judged then_;
};

}  // namespace sekisho::identity
