// SPDX-License-Identifier: Apache-2.0
// One process of sekisho-pmd for one context: it stands by while the program drives, and drives
// when the program does not.  docs/protocol/9-pm.md, "Two drivers".
#pragma once

#include <sys/types.h>

#include "transport/pm/shared_memory.h"
#include "transport/pm/unix_message.h"
#include "transport/pm/wire.h"

namespace sekisho::pm {

inline constexpr int kKeeperDone = 0;      // the context is closed in order
inline constexpr int kKeeperSpoiled = 70;  // its memory is: nothing can be saved

class Keeper {
 public:
  struct Setup {
    ContextFds fds;       // become ours
    int connection = -1;  // to the program; closed there: it is done with the context
    int pid_fd = -1;      // of the program; -1: it is dead
    pid_t program = 0;
    uid_t owner = 0;   // of the context
    int control = -1;  // to sekisho-pmd: questions of users, each with the descriptor to answer on
    const char* daemon_path = nullptr;
    bool parked = false;  // restored: it waits for its program
  };

  explicit Keeper(const Setup& setup) : setup_(setup) {}

  // Until the context is closed; an exit code.
  int Run();

 private:
  SharedHandOver hand_over() { return {memory_.head().word, Side::kKeeper}; }
  bool Acquire(OwnerWord& mine);
  bool Seize(const OwnerWord& from, bool stopped, OwnerWord& mine);
  void ApplyNotes(Endpoint& endpoint);
  bool ProgramIsDead() const;
  bool Pump();
  void CloseIfDone(Endpoint& endpoint, Nanos now);
  void Look();
  void Sleep();
  void TakeControl();
  void Answer(int client, int error, const char* text);
  void AnswerAsker();
  void RefuseAskers();
  bool IsStopped();
  GangPhase Phase();
  bool IsSettled() { return Phase() == GangPhase::kSettled; }
  bool AwaitSettled();
  int Save(int file);
  int Restore(int file);
  void DescribeGang(std::span<char> text);
  bool AskToBeAdopted();
  bool AllDrained(Endpoint& endpoint);
  Nanos Due();
  bool IsUpToIt(Nanos now);
  bool HasRun(Nanos now);
  bool IsStarved(Nanos now);
  void Pause(Nanos now, Nanos least);

  Setup setup_;
  SharedMemory memory_;
  Wire wire_;
  bool dead_ = false;         // the program is, or has closed the context
  bool holds_notes_ = false;  // until a program that was left behind in a stopped job is back
  bool predecessor_ = true;   // the word may be held by a keeper that was killed
  bool readable_ = false;     // the socket, when last asked
  bool has_asked_ = false;    // just now, when it slept
  bool closed_ = false;
  std::uint32_t calls_ = 0;
  bool attended_ = false;
  Nanos active_at_ = 0;           // when the program was last seen to call
  Nanos unread_since_ = kNever;   // and has not called since
  Nanos pause_ = 0;               // before this look
  Nanos used_ = 0, used_at_ = 0;  // processor time of the program, and when that was asked
  bool watching_ = true;
  Nanos dead_since_ = 0;
  Nanos wake_ = 0;
  Nanos retry_adoption_ = 0;
  int asker_ = -1;  // wants the job to stop or to go
  bool asks_stop_ = false;
  bool takes_back_ = false;  // a stop that took too long, as soon as we have the word
  Nanos asks_until_ = 0;
  bool was_stopped_ = false;  // and the program was not rung since
  bool was_settled_ = false;  // in a stop that this node joined
};

}  // namespace sekisho::pm
