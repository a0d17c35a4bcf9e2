// SPDX-License-Identifier: Apache-2.0
// libpmix's server for the ranks of one world on one node: docs/protocol/15-mpirun.md, "Open MPI".
//
// The library is one a process and calls back from a thread of its own, without a word of whom it
// calls; so these are functions, and what it says comes as events through a pipe to whoever waits
// there.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace sekisho::agent::pmix {

// Where the ranks of the world are.
struct Layout {
  std::string world;
  std::vector<int> node_of;        // by rank
  std::vector<std::string> hosts;  // by node; no two alike
  int node = 0;                    // ours

  std::vector<int> RanksOf(int which) const;
};

struct Event {
  enum class Kind { kFence, kInside, kOutside, kLost, kAborted };  // kLost: gone without a word
  Kind kind = Kind::kFence;
  int rank = 0;
  int code = 0;           // of kAborted
  std::string data;       // of kFence: what our ranks give
  void* waits = nullptr;  // who waits for an answer: EndFence, LetGo
};

// Empty: done; else what went wrong.
std::string Start(const std::string& directory, const std::string& host);
std::string Register(const Layout& layout);
// What a rank's environment needs besides its own: NAME=VALUE.
std::vector<std::string> Environment(const std::string& world, int rank);

// Readable when there is an event.
int EventFd();
std::unique_ptr<Event> NextEvent();
// The rank of a kOutside leaves MPI_Finalize.
void LetGo(const Event& event);
// `all`: what all nodes gave, one behind the other.
void EndFence(const Event& event, bool is_ok, std::string all);

}  // namespace sekisho::agent::pmix
