// SPDX-License-Identifier: Apache-2.0
#include "transport/pm/daemon/context_metrics.h"

#include <stdio.h>

namespace sekisho::pm {
namespace {

struct Named {
  const char* name;
  std::uint64_t Counters::* value;
};

constexpr Named kNamed[] = {
    {"datagrams_in", &Counters::datagrams_in},
    {"datagrams_out", &Counters::datagrams_out},
    {"bytes_in", &Counters::bytes_in},
    {"bytes_out", &Counters::bytes_out},
    {"messages_in", &Counters::messages_in},
    {"messages_out", &Counters::messages_out},
    {"dropped_malformed", &Counters::malformed},
    {"dropped_foreign", &Counters::foreign},
    {"dropped_bad_tag", &Counters::bad_tag},
    {"dropped_replayed", &Counters::replayed},
    {"dropped_too_old", &Counters::too_old},
    {"dropped_bad_cookie", &Counters::bad_cookie},
    {"dropped_stale_greeting", &Counters::stale_greeting},
    {"dropped_deferred_greeting", &Counters::greeting_deferred},
    {"dropped_no_session", &Counters::no_session},
    {"dropped_bad_frames", &Counters::bad_frames},
    {"dropped_no_interval", &Counters::no_interval},
    {"dropped_replies", &Counters::replies_lost},
    {"lost_by_gap", &Counters::lost_by_gap},
    {"lost_by_timeout", &Counters::lost_by_timeout},
    {"probes", &Counters::probes},
    {"timeouts", &Counters::timeouts},
    {"spurious", &Counters::spurious},
    {"retransmitted", &Counters::retransmitted},
    {"cut_smaller", &Counters::cut_smaller},
    {"acks_only", &Counters::acks_only},
    {"held_small", &Counters::held_small},
    {"mtu_probes", &Counters::mtu_probes},
    {"mtu_black_holes", &Counters::mtu_black_holes},
    {"ce_marks", &Counters::ce_marks},
    {"violations", &Counters::violations},
    {"sessions", &Counters::sessions},
    {"no_packet_record", &Counters::no_packet_record},
};
static_assert(sizeof kNamed / sizeof kNamed[0] == sizeof(Counters) / sizeof(std::uint64_t));

}  // namespace

std::size_t WriteMetrics(SharedMemory& memory, std::span<char> out) {
  SharedHead& head = memory.head();
  const Config& config = memory.config();
  const Endpoint& endpoint = memory.area(OwnerWord::Of(head.word.load()).area);
  const Counters counters = endpoint.counters();
  std::size_t used = 0;
  const auto add = [&](const char* name, std::uint64_t value) {
    const int size = snprintf(out.data() + used, out.size() - used,
                              "sekisho_pm_%s_total{context=\"%u\",node=\"%u\"} %llu\n", name,
                              config.context, config.node, static_cast<unsigned long long>(value));
    if (size > 0 && used + static_cast<std::size_t>(size) < out.size()) {
      used += static_cast<std::size_t>(size);
    }
  };
  for (const Named& named : kNamed) add(named.name, counters.*named.value);
  add("keeper_turns", head.take_overs.load());
  add("seizures", head.seizures.load());
  add("rings", head.rings.load());
  add("memory_datagrams_in", head.near_in.load());
  add("memory_datagrams_out", head.near_out.load());
  out[used] = 0;
  return used;
}

}  // namespace sekisho::pm
