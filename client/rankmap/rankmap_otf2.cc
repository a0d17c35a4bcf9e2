// SPDX-License-Identifier: Apache-2.0
#include "client/rankmap/rankmap_otf2.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <otf2/otf2.h>

#include "rankmap/trace/collectives.h"

namespace sekisho::client {
namespace {

constexpr uint64_t kMostRanks = rankmap::Pattern::kMaxRanks;

// What the library would print.
OTF2_ErrorCode KeepError(void* last, const char*, uint64_t, const char*, OTF2_ErrorCode code, const char* format,
                         va_list arguments) {
  char text[200];
  std::vsnprintf(text, sizeof text, format, arguments);
  *static_cast<std::string*>(last) = fmt::format("{}: {}", OTF2_Error_GetDescription(code), text);
  return code;
}

struct Group {
  std::vector<uint64_t> members;
  bool are_locations = false;  // else ranks of the world
};

class Trace {
 public:
  OTF2_CallbackCode AddLocation(OTF2_LocationRef location, OTF2_LocationGroupRef process) {
    process_of_[location] = process;
    return OTF2_CALLBACK_SUCCESS;
  }

  OTF2_CallbackCode AddGroup(OTF2_GroupRef self, OTF2_GroupType type, OTF2_Paradigm paradigm, OTF2_GroupFlag flags,
                             uint32_t count, const uint64_t* members) {
    if (paradigm != OTF2_PARADIGM_MPI) {
      return OTF2_CALLBACK_SUCCESS;
    }
    if (type == OTF2_GROUP_TYPE_COMM_LOCATIONS) {
      world_.assign(members, members + count);
    } else if (type == OTF2_GROUP_TYPE_COMM_GROUP) {
      groups_[self] = {{members, members + count}, (flags & OTF2_GROUP_FLAG_GLOBAL_MEMBERS) != 0};
    }
    return OTF2_CALLBACK_SUCCESS;
  }

  OTF2_CallbackCode AddComm(OTF2_CommRef self, OTF2_GroupRef group) {
    group_of_[self] = group;
    return OTF2_CALLBACK_SUCCESS;
  }

  // Ranks and communicators, when all definitions are known.
  absl::Status Settle() {
    if (world_.empty() || world_.size() > kMostRanks) {
      return absl::InvalidArgumentError(fmt::format("{} MPI ranks; expected 1 to {}", world_.size(), kMostRanks));
    }
    std::map<OTF2_LocationGroupRef, uint32_t> rank_of_process;
    for (uint32_t rank = 0; rank < world_.size(); ++rank) {
      rank_of_location_[world_[rank]] = rank;
      rank_of_process[process_of_[world_[rank]]] = rank;
    }
    for (const auto& [location, process] : process_of_) {
      if (const auto found = rank_of_process.find(process); found != rank_of_process.end()) {
        rank_of_location_[location] = found->second;  // a thread sends for its process
      }
    }
    for (const auto& [comm, group] : group_of_) {
      const auto found = groups_.find(group);
      if (found == groups_.end()) {
        continue;  // of one rank, or between groups
      }
      std::vector<uint32_t>& ranks = comms_[comm];
      for (const uint64_t member : found->second.members) {
        const auto at = rank_of_location_.find(member);
        const bool is_known = found->second.are_locations ? at != rank_of_location_.end() : member < world_.size();
        if (!is_known) {
          return absl::InvalidArgumentError(fmt::format("communicator {} has a member {} that is no rank", comm, member));
        }
        ranks.push_back(found->second.are_locations ? at->second : static_cast<uint32_t>(member));
      }
    }
    return absl::OkStatus();
  }

  OTF2_CallbackCode Send(OTF2_LocationRef location, uint32_t receiver, OTF2_CommRef comm, uint64_t bytes) {
    const auto source = rank_of_location_.find(location);
    const auto ranks = comms_.find(comm);
    if (source != rank_of_location_.end() && ranks != comms_.end() && receiver < ranks->second.size()) {
      Count(source->second, ranks->second[receiver], bytes);
    }
    return OTF2_CALLBACK_SUCCESS;
  }

  // As the tracer decomposes it.  The sizes are over all ranks: a broadcast's root sends n times what each gets.
  OTF2_CallbackCode Collect(OTF2_LocationRef location, OTF2_CollectiveOp op, OTF2_CommRef comm, uint32_t root,
                            uint64_t sent, uint64_t received) {
    const auto source = rank_of_location_.find(location);
    const auto found = comms_.find(comm);
    if (source == rank_of_location_.end() || found == comms_.end()) {
      return OTF2_CALLBACK_SUCCESS;
    }
    const std::vector<uint32_t>& ranks = found->second;
    const auto me = std::find(ranks.begin(), ranks.end(), source->second);
    if (me == ranks.end()) {
      return OTF2_CALLBACK_SUCCESS;
    }
    struct Context {
      Trace* trace;
      const std::vector<uint32_t>& ranks;
      uint32_t source;
    } context{this, ranks, source->second};
    const traffic_caller caller{static_cast<int>(me - ranks.begin()), static_cast<int>(ranks.size()),
                                [](void* opaque, int peer, uint64_t bytes) {
                                  auto& c = *static_cast<Context*>(opaque);
                                  c.trace->Count(c.source, c.ranks[peer], bytes);
                                },
                                &context};
    const uint64_t n = ranks.size();
    const std::vector<uint64_t> blocks(n, sent / n);  // where they differ, this is their mean
    const int first = static_cast<int>(root < n ? root : 0);
    switch (op) {
      case OTF2_COLLECTIVE_OP_BARRIER: traffic_barrier(&caller); break;
      case OTF2_COLLECTIVE_OP_BCAST: traffic_bcast(&caller, first, received); break;
      case OTF2_COLLECTIVE_OP_GATHER: traffic_gather(&caller, first, sent); break;
      case OTF2_COLLECTIVE_OP_GATHERV: traffic_gatherv(&caller, first, sent); break;
      case OTF2_COLLECTIVE_OP_SCATTER: traffic_scatter(&caller, first, received); break;
      case OTF2_COLLECTIVE_OP_SCATTERV: traffic_scatterv(&caller, first, blocks.data()); break;
      case OTF2_COLLECTIVE_OP_ALLGATHER: traffic_allgather(&caller, received / n); break;
      case OTF2_COLLECTIVE_OP_ALLGATHERV: traffic_allgatherv(&caller, blocks.data()); break;
      case OTF2_COLLECTIVE_OP_ALLTOALL: traffic_alltoall(&caller, sent / n); break;
      case OTF2_COLLECTIVE_OP_ALLTOALLV:
      case OTF2_COLLECTIVE_OP_ALLTOALLW: traffic_alltoallv(&caller, blocks.data()); break;
      case OTF2_COLLECTIVE_OP_ALLREDUCE: traffic_allreduce(&caller, received / n); break;
      case OTF2_COLLECTIVE_OP_REDUCE: traffic_reduce(&caller, first, sent); break;
      case OTF2_COLLECTIVE_OP_REDUCE_SCATTER: traffic_reduce_scatter(&caller, blocks.data()); break;
      case OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK: traffic_reduce_scatter_block(&caller, sent / n); break;
      case OTF2_COLLECTIVE_OP_SCAN:
      case OTF2_COLLECTIVE_OP_EXSCAN: traffic_scan(&caller, sent); break;
      default: break;  // communicators made, files opened
    }
    return OTF2_CALLBACK_SUCCESS;
  }

  const std::map<OTF2_LocationRef, OTF2_LocationGroupRef>& locations() const { return process_of_; }

  absl::StatusOr<rankmap::Pattern> Pattern() const {
    std::vector<rankmap::Message> messages;
    messages.reserve(traffic_.size());
    for (const auto& [pair, sum] : traffic_) {
      messages.push_back({pair.first, pair.second, sum.bytes, 0, sum.count});
    }
    return rankmap::Pattern::Create(static_cast<int>(world_.size()), std::move(messages));
  }

 private:
  struct Sum {
    int64_t bytes = 0;
    int64_t count = 0;
  };

  void Count(uint32_t source, uint32_t target, uint64_t bytes) {
    constexpr uint64_t kMost = uint64_t{1} << 53;  // Pattern::Create refuses more
    Sum& sum = traffic_[{source, target}];
    sum.bytes = static_cast<int64_t>(std::min(kMost, static_cast<uint64_t>(sum.bytes) + std::min(bytes, kMost)));
    ++sum.count;
  }

  std::map<OTF2_LocationRef, OTF2_LocationGroupRef> process_of_;
  std::vector<uint64_t> world_;  // location of each rank
  std::map<OTF2_GroupRef, Group> groups_;
  std::map<OTF2_CommRef, OTF2_GroupRef> group_of_;
  std::map<OTF2_LocationRef, uint32_t> rank_of_location_;
  std::map<OTF2_CommRef, std::vector<uint32_t>> comms_;  // ranks of the world
  std::map<std::pair<uint32_t, uint32_t>, Sum> traffic_;
};

Trace& Of(void* opaque) { return *static_cast<Trace*>(opaque); }

bool ReadDefinitions(OTF2_Reader* reader, Trace& trace) {
  OTF2_GlobalDefReaderCallbacks* calls = OTF2_GlobalDefReaderCallbacks_New();
  OTF2_GlobalDefReaderCallbacks_SetLocationCallback(
      calls, [](void* t, OTF2_LocationRef self, OTF2_StringRef, OTF2_LocationType, uint64_t,
                OTF2_LocationGroupRef process) { return Of(t).AddLocation(self, process); });
  OTF2_GlobalDefReaderCallbacks_SetGroupCallback(
      calls, [](void* t, OTF2_GroupRef self, OTF2_StringRef, OTF2_GroupType type, OTF2_Paradigm paradigm,
                OTF2_GroupFlag flags, uint32_t count, const uint64_t* members) {
        return Of(t).AddGroup(self, type, paradigm, flags, count, members);
      });
  OTF2_GlobalDefReaderCallbacks_SetCommCallback(
      calls, [](void* t, OTF2_CommRef self, OTF2_StringRef, OTF2_GroupRef group, OTF2_CommRef, OTF2_CommFlag) {
        return Of(t).AddComm(self, group);
      });
  OTF2_GlobalDefReader* definitions = OTF2_Reader_GetGlobalDefReader(reader);
  uint64_t count = 0;
  const bool is_good =
      definitions != nullptr &&
      OTF2_Reader_RegisterGlobalDefCallbacks(reader, definitions, calls, &trace) == OTF2_SUCCESS &&
      OTF2_Reader_ReadAllGlobalDefinitions(reader, definitions, &count) == OTF2_SUCCESS;
  OTF2_GlobalDefReaderCallbacks_Delete(calls);
  return is_good;
}

// Each location's own definitions translate its numbers of communicators into the global ones.
bool OpenLocations(OTF2_Reader* reader, const Trace& trace) {
  for (const auto& [location, process] : trace.locations()) {
    if (OTF2_Reader_SelectLocation(reader, location) != OTF2_SUCCESS) {
      return false;
    }
  }
  const bool has_definitions = OTF2_Reader_OpenDefFiles(reader) == OTF2_SUCCESS;
  if (OTF2_Reader_OpenEvtFiles(reader) != OTF2_SUCCESS) {
    return false;
  }
  for (const auto& [location, process] : trace.locations()) {
    if (OTF2_DefReader* own = has_definitions ? OTF2_Reader_GetDefReader(reader, location) : nullptr; own != nullptr) {
      uint64_t count = 0;
      if (OTF2_Reader_ReadAllLocalDefinitions(reader, own, &count) != OTF2_SUCCESS) {
        return false;
      }
      OTF2_Reader_CloseDefReader(reader, own);
    }
    if (OTF2_Reader_GetEvtReader(reader, location) == nullptr) {
      return false;
    }
  }
  if (has_definitions) {
    OTF2_Reader_CloseDefFiles(reader);
  }
  return true;
}

bool ReadEvents(OTF2_Reader* reader, Trace& trace) {
  OTF2_GlobalEvtReaderCallbacks* calls = OTF2_GlobalEvtReaderCallbacks_New();
  OTF2_GlobalEvtReaderCallbacks_SetMpiSendCallback(
      calls, [](OTF2_LocationRef location, OTF2_TimeStamp, void* t, OTF2_AttributeList*, uint32_t receiver,
                OTF2_CommRef comm, uint32_t, uint64_t bytes) { return Of(t).Send(location, receiver, comm, bytes); });
  OTF2_GlobalEvtReaderCallbacks_SetMpiIsendCallback(
      calls, [](OTF2_LocationRef location, OTF2_TimeStamp, void* t, OTF2_AttributeList*, uint32_t receiver,
                OTF2_CommRef comm, uint32_t, uint64_t bytes,
                uint64_t) { return Of(t).Send(location, receiver, comm, bytes); });
  OTF2_GlobalEvtReaderCallbacks_SetMpiCollectiveEndCallback(
      calls, [](OTF2_LocationRef location, OTF2_TimeStamp, void* t, OTF2_AttributeList*, OTF2_CollectiveOp op,
                OTF2_CommRef comm, uint32_t root, uint64_t sent,
                uint64_t received) { return Of(t).Collect(location, op, comm, root, sent, received); });
  OTF2_GlobalEvtReader* events = OTF2_Reader_GetGlobalEvtReader(reader);
  uint64_t count = 0;
  const bool is_good = events != nullptr &&
                       OTF2_Reader_RegisterGlobalEvtCallbacks(reader, events, calls, &trace) == OTF2_SUCCESS &&
                       OTF2_Reader_ReadAllGlobalEvents(reader, events, &count) == OTF2_SUCCESS;
  OTF2_GlobalEvtReaderCallbacks_Delete(calls);
  return is_good;
}

// The library would say so too, and lose memory over it.
bool LooksLikeOtf2(const std::string& path) {
  std::array<char, 16> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  return std::string_view(head.data(), head.size()).find("OTF2") != std::string_view::npos;
}

}  // namespace

absl::StatusOr<rankmap::Pattern> ReadOtf2(const std::string& path) {
  if (!LooksLikeOtf2(path)) {
    return absl::InvalidArgumentError(
        fmt::format("{}: expected the anchor file of an OTF2 trace (traces.otf2)", path));
  }
  std::string last = "no OTF2 trace";
  OTF2_Error_RegisterCallback(KeepError, &last);
  const auto fail = [&path](const std::string& why) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", path, why));
  };
  Trace trace;
  absl::Status settled;
  bool is_read = false;
  if (const std::unique_ptr<OTF2_Reader, decltype(&OTF2_Reader_Close)> reader(OTF2_Reader_Open(path.c_str()),
                                                                               OTF2_Reader_Close);
      reader && OTF2_Reader_SetSerialCollectiveCallbacks(reader.get()) == OTF2_SUCCESS &&
      ReadDefinitions(reader.get(), trace)) {
    settled = trace.Settle();
    is_read = !settled.ok() || (OpenLocations(reader.get(), trace) && ReadEvents(reader.get(), trace));
  }
  OTF2_Error_RegisterCallback(nullptr, nullptr);
  if (!is_read) {
    return fail(last);
  }
  if (!settled.ok()) {
    return fail(std::string(settled.message()));
  }
  return trace.Pattern();
}

}  // namespace sekisho::client
