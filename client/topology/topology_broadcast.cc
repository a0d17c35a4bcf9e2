// SPDX-License-Identifier: Apache-2.0
#include "client/topology/topology_broadcast.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <ostream>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "client/rankmap/rankmap_files.h"
#include "client/topology/topology_live.h"
#include "client/topology/topology_probers.h"
#include "topology/broadcast.h"
#include "topology/broadcast_chain.h"
#include "topology/errors.h"
#include "topology/fast.h"
#include "topology/text_format.h"

namespace sekisho::client {
namespace {

constexpr std::chrono::seconds kLookAfter{2};  // whether those that copy are there at all

// "ok ..." or "no WHY".
struct Reply {
  bool is_ok = false;
  std::string text;
};
Reply ParseReply(const std::string& answer) {
  return {answer.starts_with("ok"), answer.size() > 3 ? answer.substr(3) : ""};
}

uint64_t ParseBytes(const std::string& text) {
  uint64_t bytes = 0;
  std::from_chars(text.data(), text.data() + text.size(), bytes);
  return bytes;
}

class Broadcast {
 public:
  Broadcast(TopologyProbers& probers, std::vector<int> order)
      : probers_(probers), order_(std::move(order)), chain_(order_), why_(probers.count()) {}

  absl::StatusOr<uint64_t> Prepare(const std::string& file, const std::string& destination) {
    const int source = order_[0];
    const auto replies =
        AskAll({source}, [&](long id) { return topology::PrintSourceOrder(id, file); });
    if (!replies.contains(source)) {
      return absl::InvalidArgumentError(Why(source));
    }
    size_ = ParseBytes(replies.at(source));
    AskAll(Targets(), [&](long id) { return topology::PrintTargetOrder(id, size_, destination); });
    return size_;
  }

  // Until every host has all of it, or nobody is left to copy from.
  void Copy() {
    for (const int host : Targets()) {
      Pull(host);
    }
    auto look_after = TopologyProbers::Clock::now() + kLookAfter;
    while (!pulls_.empty()) {
      for (const TopologyProbers::Event& event : probers_.Wait(look_after)) {
        Take(event);
      }
      if (TopologyProbers::Clock::now() >= look_after) {
        look_after += kLookAfter;
        for (const auto& [id, host] : pulls_) {
          probers_.Order(host, next_id_, topology::PrintHereOrder(next_id_));
          ++next_id_;
        }
      }
    }
  }

  // Gives its name to what is the same as at the source; its SHA-256.
  absl::StatusOr<std::string> Verify() {
    std::vector<int> all = Targets();
    all.push_back(order_[0]);
    auto digests = AskAll(all, topology::PrintDigestOrder);
    const auto told = digests.find(order_[0]);
    if (told == digests.end()) {
      return absl::UnavailableError(Why(order_[0]));
    }
    std::vector<int> right;
    for (const int host : Targets()) {
      if (digests.contains(host) && digests[host] == told->second) {
        right.push_back(host);
      } else if (digests.contains(host)) {
        why_[host] = fmt::format("its checksum is {}, not {}", digests[host], told->second);
      }
    }
    AskAll(right, topology::PrintCommitOrder);
    return told->second;
  }

  // Empty: it has the file.
  std::string Why(int host) const {
    return probers_.Lost(host).empty() ? why_[host] : probers_.Lost(host);
  }

 private:
  // All but the source, of whom nothing bad is known.
  std::vector<int> Targets() const {
    std::vector<int> targets;
    std::copy_if(order_.begin() + 1, order_.end(), std::back_inserter(targets),
                 [this](int host) { return Why(host).empty(); });
    return targets;
  }

  // One order to each of the hosts; what those said that could obey it.
  std::map<int, std::string> AskAll(const std::vector<int>& hosts,
                                    const std::function<std::string(long)>& order) {
    std::map<long, int> asked;
    for (const int host : hosts) {
      if (probers_.Lost(host).empty()) {
        asked.emplace(next_id_, host);
        probers_.Order(host, next_id_, order(next_id_));
        ++next_id_;
      }
    }
    std::map<int, std::string> said;
    while (!asked.empty()) {
      for (const TopologyProbers::Event& event : probers_.Wait()) {
        if (!event.answer) {
          std::erase_if(asked, [&](const auto& one) { return one.second == event.host; });
          chain_.Lose(event.host);
        } else if (asked.erase(event.id) > 0) {
          const Reply reply = ParseReply(*event.answer);
          if (reply.is_ok) {
            said[event.host] = reply.text;
          } else {
            why_[event.host] = reply.text;
            chain_.Lose(event.host);
          }
        }
      }
    }
    return said;
  }

  void Pull(int host) {
    const int before = chain_.Before(host);
    if (before < 0 || !Why(host).empty()) {
      return;
    }
    pulls_.emplace(next_id_, host);
    probers_.Order(host, next_id_, topology::PrintPullOrder(next_id_, probers_.Ready(before).at),
                   TopologyProbers::Patience::kEndless);
    ++next_id_;
  }

  void Take(const TopologyProbers::Event& event) {
    if (!event.answer) {
      chain_.Lose(event.host);
      std::erase_if(pulls_, [&](const auto& one) { return one.second == event.host; });
      return;
    }
    const auto found = pulls_.find(event.id);
    if (found == pulls_.end()) {
      return;  // it lives
    }
    pulls_.erase(found);
    if (ParseBytes(*event.answer) >= size_) {
      return;
    }
    chain_.Fail(event.host);
    if (chain_.Before(event.host) < 0) {
      why_[event.host] = fmt::format("gave up after {} of {} bytes: {}", ParseBytes(*event.answer),
                                     size_, event.answer->substr(event.answer->find(' ') + 1));
    }
    Pull(event.host);
  }

  TopologyProbers& probers_;
  std::vector<int> order_;
  topology::BroadcastChain chain_;
  std::vector<std::string> why_;
  std::map<long, int> pulls_;
  uint64_t size_ = 0;
  long next_id_ = 1;
};

// Whoever the tree does not know comes last.
std::vector<int> OrderOfAll(const topology::Tree& tree, int source) {
  std::vector<int> order = topology::BroadcastOrder(tree, source);
  const std::set<int> known(order.begin(), order.end());
  for (int host = 0; host < tree.host_count; ++host) {
    if (!known.contains(host)) {
      order.push_back(host);
    }
  }
  return order;
}

}  // namespace

absl::Status BroadcastFile(const TopologyBroadcastOptions& options, std::ostream& out,
                           std::ostream& log) {
  // Validate.
  for (const std::string& path : {options.file, options.destination}) {
    if (path.find('\n') != std::string::npos) {
      return topology::errors::BadPath(path);
    }
  }
  std::string text;
  if (!options.tree.empty()) {
    ASSIGN_OR_RETURN(text, ReadFile(options.tree));
  }
  TopologyProbers probers;
  ASSIGN_OR_RETURN(const topology::HostList hosts, OpenProbers(options.source, probers));
  const auto first = options.from.empty()
                         ? hosts.names.begin()
                         : std::find(hosts.names.begin(), hosts.names.end(), options.from);
  if (first == hosts.names.end()) {
    return topology::errors::NoSuchHost(options.from);
  }
  const int source = static_cast<int>(first - hosts.names.begin());

  // Where are they?
  topology::Tree tree;
  if (options.tree.empty()) {
    topology::FastMethod method(static_cast<int>(hosts.names.size()),
                                {.site_hints = KnownSites(options.source, hosts),
                                 .most_at_once = options.source.most_at_once});
    RunLive(method, probers, options.source.most_at_once);
    tree = method.Finish().tree;
  } else {
    ASSIGN_OR_RETURN(topology::NamedTree named,
                     topology::ParseTree(text, options.tree, hosts.names));
    tree = std::move(named.tree);
  }

  // Copy.
  const std::vector<int> order = OrderOfAll(tree, source);
  Broadcast broadcast(probers, order);
  ASSIGN_OR_RETURN(const uint64_t size, broadcast.Prepare(options.file, options.destination));
  const auto begin = TopologyProbers::Clock::now();
  broadcast.Copy();
  const double seconds =
      std::chrono::duration<double>(TopologyProbers::Clock::now() - begin).count();
  ASSIGN_OR_RETURN(const std::string digest, broadcast.Verify());

  // Answer.
  size_t good = 0;
  for (const int host : order) {
    const std::string why = broadcast.Why(host);
    good += why.empty() ? 1 : 0;
    if (!why.empty()) {
      log << fmt::format("{}: {}\n", hosts.names[host], why);
    }
  }
  out << fmt::format("{} of {} hosts have {} bytes, copied in {:.3f} s ({:.1f} Mb/s); sha256 {}\n",
                     good, hosts.names.size(), size, seconds,
                     static_cast<double>(size) * 8e-6 / std::max(seconds, 1e-9), digest);
  return good == hosts.names.size() ? absl::OkStatus()
                                    : topology::errors::NotEverywhere(good, hosts.names.size());
}

}  // namespace sekisho::client
