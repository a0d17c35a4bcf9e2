// SPDX-License-Identifier: Apache-2.0
#include "agent/pmi_ranks.h"

#include <cstdlib>

#include <fmt/format.h>

namespace sekisho::agent {
namespace {

constexpr size_t kFreshMost = 1 << 20;  // of one node between two barriers
constexpr char kBarrierOut[] = "cmd=barrier_out rc=0\n";

size_t SizeOf(const PmiPairs& pairs) {
  size_t size = 0;
  for (const auto& [key, value] : pairs) {
    size += key.size() + value.size() + 2;
  }
  return size;
}

// Whom a command is about: its speaker, unless it names one for which it speaks.
int RankOf(const PmiCommand& command, int speaker) {
  const std::string& named = command.Get("rank");
  return named.empty() ? speaker : std::atoi(named.c_str());
}

}  // namespace

PmiRanks::Effects PmiRanks::OnLine(int rank, uint64_t number, std::string_view line) {
  Effects effects;
  const auto answer = [&effects, rank](std::string text) {
    effects.lines.emplace_back(rank, std::move(text) + "\n");
  };
  const auto command = ParsePmi(line);
  if (!command) {
    effects.complaint = "what it says is no PMI-1";
    return effects;
  }
  const std::string& name = command->name;
  static const std::set<std::string> kNews = {"init",      "put",    "barrier_in", "finalize", "represent",
                                              "inside", "outside", "lost",       "abort"};
  effects.is_news = kNews.count(name) > 0;
  if (name == "init") {
    inside_.insert(rank);
    answer(command->Get("pmi_version") == "1"
               ? "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1"
               : "cmd=response_to_init rc=-1 pmi_version=1 pmi_subversion=1");
  } else if (name == "get_maxes") {
    answer(fmt::format("cmd=maxes kvsname_max={} keylen_max={} vallen_max={}", kPmiNameMax,
                       kPmiKeyMax, kPmiValueMax));
  } else if (name == "get_appnum") {
    answer("cmd=appnum rc=0 appnum=0");
  } else if (name == "get_my_kvsname") {
    answer("cmd=my_kvsname rc=0 kvsname=" + world_);
  } else if (name == "get_universe_size") {
    answer(fmt::format("cmd=universe_size rc=0 size={}", ranks_));
  } else if (name == "put") {
    answer(Put(*command));
  } else if (name == "get") {
    const auto found = pairs_.find(command->Get("key"));
    answer(found == pairs_.end() ? "cmd=get_result rc=-1 msg=no_such_key value=unknown"
                                 : "cmd=get_result rc=0 value=" + found->second);
  } else if (name == "barrier_in") {
    return EnterBarrier(rank, number);
  } else if (name == "finalize") {
    inside_.erase(rank);
    answer("cmd=finalize_ack rc=0");
  } else if (name == "publish_name") {
    answer("cmd=publish_result rc=-1 msg=not_supported");
  } else if (name == "unpublish_name") {
    answer("cmd=unpublish_result rc=-1 msg=not_supported");
  } else if (name == "lookup_name") {
    answer("cmd=lookup_result rc=-1 msg=not_supported");
  } else if (name == "spawn") {
    answer("cmd=spawn_result rc=-1 msg=not_supported");
  } else if (name == "place") {  // sekisho-rank: parts may have been dropped since its environment was made
    answer(fmt::format("cmd=place_result rc=0 rank={} size={}", rank, ranks_));
  } else if (name == "represent") {  // a node's PMIx server
    local_ranks_ = 1;
    speaker_ = rank;
    answer("cmd=represent_result rc=0");
  } else if (name == "inside") {
    inside_.insert(RankOf(*command, rank));
  } else if (name == "outside") {
    inside_.erase(RankOf(*command, rank));
    effects.has_left = true;
    answer("cmd=outside_result rc=0");
  } else if (name == "lost") {
    lost_.insert(RankOf(*command, rank));
    effects.has_left = true;
  } else if (name == "abort") {
    effects.aborted = RankOf(*command, rank);
    aborted_.emplace(*effects.aborted, std::atoi(command->Get("exitcode").c_str()));
  } else {
    effects.complaint = "unknown command " + name.substr(0, 64);
  }
  return effects;
}

void PmiRanks::OnGone(int rank) {
  if (speaker_ == rank) {
    speaker_.reset();
  }
}

std::optional<int> PmiRanks::AbortCode(int rank) const {
  const auto found = aborted_.find(rank);
  return found == aborted_.end() ? std::nullopt : std::optional(found->second);
}

uint64_t PmiRanks::Entered(int rank) const {
  const auto found = entered_.find(rank);
  return found == entered_.end() ? 0 : found->second;
}

std::string PmiRanks::Put(const PmiCommand& command) {
  const std::string& key = command.Get("key");
  const std::string& value = command.Get("value");
  if (!IsPmiPair(key, value)) {
    return "cmd=put_result rc=-1 msg=bad_key_or_value";
  }
  if (SizeOf(fresh_) + key.size() + value.size() > kFreshMost) {
    return "cmd=put_result rc=-1 msg=too_much";
  }
  fresh_[key] = pairs_[key] = value;
  return "cmd=put_result rc=0 msg=success";
}

PmiRanks::Effects PmiRanks::EnterBarrier(int rank, uint64_t number) {
  Effects effects;
  if (number <= entered_[rank]) {  // said again
    if (waiting_.count(rank) == 0) {
      effects.lines.emplace_back(rank, kBarrierOut);
    }
    return effects;
  }
  effects.is_news = true;
  entered_[rank] = number;
  waiting_.insert(rank);
  if (int(waiting_.size()) < local_ranks_ || pending_) {
    return effects;
  }
  pending_.emplace();
  pending_->set_id(fmt::format("pmi {}", barriers_));
  pending_->set_data(EncodePmiPairs(fresh_));
  fresh_.clear();
  effects.fence = pending_;
  return effects;
}

PmiRanks::Effects PmiRanks::OnFenceDone(const proto::Fence& result) {
  Effects effects;
  if (!pending_ || result.id() != pending_->id()) {
    return effects;  // said twice
  }
  auto pairs = DecodePmiPairs(result.data());
  if (!pairs) {
    effects.complaint = "what the other sites gave cannot be read";
    return effects;
  }
  effects.is_news = true;
  pairs_.merge(*pairs);
  for (auto& [key, value] : *pairs) {  // what was there before
    pairs_[key] = std::move(value);
  }
  last_ = std::exchange(pending_, std::nullopt);
  ++barriers_;
  for (const int rank : waiting_) {
    effects.lines.emplace_back(rank, kBarrierOut);
  }
  waiting_.clear();
  return effects;
}

}  // namespace sekisho::agent
