// SPDX-License-Identifier: Apache-2.0
// All processes of one task, also those that left its session: kept together by a cgroup (v2, or
// v1's freezer), or, where there is none, as the descendants of a supervisor that is their
// subreaper.
#pragma once

#include <sys/types.h>
#include <functional>
#include <string>
#include <vector>

#include "agent/task/spec.h"

namespace sekisho::agent::task {

class Group {
 public:
  // `root`: whose descendants the task's processes are.
  Group(Grouping grouping, std::string cgroup, pid_t root);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // Makes the cgroup; without permission to, the group becomes kNone.
  void Create(int64_t process_limit);
  Grouping grouping() const { return grouping_; }

  // For clone3; -1 if the child must Join() itself.
  int cgroup_fd() const { return grouping_ == Grouping::kV2 ? fd_ : -1; }
  bool Join();

  std::vector<pid_t> Members() const;
  void SignalAll(int signal) const;

  // One pass; call it until nothing is left, since processes may fork meanwhile.  `thorough`: also
  // what descends from `root` outside of the cgroup.
  void KillOnce(bool thorough);

  // Nothing runs until thawed; also not what is forked or signalled meanwhile.
  void Freeze();
  void Thaw();

  // False as long as something is left in the cgroup.
  bool Remove();

 private:
  Grouping grouping_;
  std::string cgroup_;
  pid_t root_;
  int fd_ = -1;
};

// Children of children of `root`, as /proc has them.
std::vector<pid_t> Descendants(pid_t root);

// Signals those of `pids` that are members still once they are held open: a number alone may be another
// process's by then.  Returns whom it reached.
using ListMembers = std::function<std::vector<pid_t>()>;
std::vector<pid_t> SendToMembers(const std::vector<pid_t>& pids, int signal, const ListMembers& members);

// Processes of session `session`.
std::vector<pid_t> SessionMembers(pid_t session);
// Those of the account, if one of them at least has `mark`, NAME=VALUE, in its environment.  If none has, ours may all
// have gone, and the number be a stranger's by now; as long as one is left, it is given to nobody else.  Without a mark
// it is known to be ours.
void KillSession(pid_t session, uid_t uid, const std::string& mark);

// Parses /proc/PID/stat, whose second field may hold anything.
struct Stat {
  pid_t parent = 0;
  pid_t session = 0;
  char state = '?';
};
bool ParseStat(const std::string& text, Stat& stat);

}  // namespace sekisho::agent::task
