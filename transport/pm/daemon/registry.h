// SPDX-License-Identifier: Apache-2.0
// The contexts of this host: sekisho-pmd makes them, starts a keeper for each, and asks the keepers
// what users want to know.
#pragma once

#include <sys/types.h>

#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "transport/pm/shared_memory.h"
#include "transport/pm/unix_message.h"

namespace sekisho::pm {

struct Client {
  int fd = -1;
  uid_t uid = 0;
  pid_t pid = 0;
  Nanos since = 0;
};

int Errno(const std::error_code& error);
void CloseAll(std::span<int> fds);
void Reply(int client, int error, const std::string& text, std::span<const int> fds);

class Registry {
 public:
  explicit Registry(std::string path) : path_(std::move(path)) {}
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // The client's first message.  Its descriptor is ours from now on.
  void OnMessage(const Client& client, const AskMessage& ask, Received& received);
  // Keepers that ended.
  void Reap();
  // Descriptors that a keeper must not inherit are closed in it, these among them.
  std::size_t size() const { return contexts_.size(); }

 private:
  // Whom a keeper stands behind.
  struct Program {
    pid_t pid = 0;
    int pid_fd = -1;  // -1: it is dead
    int connection = -1;
  };

  // Two jobs of a user may have the same number: key, number, node and user tell contexts apart.
  struct Context {
    std::uint16_t number = 0, node = 0;
    JobKey key{};
    uid_t uid = 0;
    ContextFds fds;
    SharedHeadView head;
    Program program;
    pid_t keeper = -1;  // a child of ours that was not waited for
    int control = -1;
    int starts = 0;
    bool parked = false;  // restored, and no program yet
  };

  // A ring that one of two has and the other has not asked for yet.
  struct Offer {
    const Context* has = nullptr;
    const Context* other = nullptr;
    int memory = -1;
  };

  static int Make(const Config& config, const Address& own, uid_t uid,
                  std::unique_ptr<Context>& made);
  int Open(const Client& client, const AskMessage& ask, const Received& received);
  static bool Authenticates(const Context& context, const Config& as);
  int Attach(Context& context, const Client& client);
  int Restore(const Client& client, const AskMessage& ask, const Received& received);
  int Adopt(const Client& client, const AskMessage& ask, Received& received);
  int Named(const Client& client, const AskMessage& ask, const Received& received,
            Context*& context);
  static bool AreOfOneJob(const Context& a, const Context& b);
  void SayStopIsNear(const Context& asked, bool is_near);
  void Attend(const Context& asked);
  int Forward(const Client& client, const AskMessage& ask, const Received& received);
  int Trace(const Client& client, const AskMessage& ask, const Received& received);
  int Move(const Client& client, const AskMessage& ask, const Received& received);
  int Near(const Client& client, const AskMessage& ask, const Received& received);
  int List(const Client& client, const AskMessage& ask, const Received& received) const;
  bool MayHaveMore(uid_t uid) const;
  int Start(Context& context);
  static bool HasLostItsProgram(const Context& context);
  bool IsEnding(const Config& config, uid_t uid);
  static int Watch(const Client& client, Program& program);
  static void Forget(Program& program);
  void Free(Context& context);
  Context* Find(const JobKey& key, std::uint16_t number, std::uint16_t node, uid_t uid);
  static bool IsMemoryOf(const Context& context, int memory);
  Context* FindByMemory(const AskMessage& ask, int memory);
  void ForgetOffers(const Context& context);

  std::string path_;
  std::vector<std::unique_ptr<Context>> contexts_;
  std::vector<Offer> offers_;
};

}  // namespace sekisho::pm
