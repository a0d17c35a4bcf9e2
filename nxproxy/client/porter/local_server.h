// SPDX-License-Identifier: Apache-2.0
// The porter's ear for shims: docs/protocol/11-nxproxy-shim.md, "Questions".
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

#include "nxproxy/client/local.h"
#include "nxproxy/client/porter/loop.h"

namespace sekisho::nxproxy::client {

// One who asked.  To be answered once, or as often as is expected: then the first answer that says more
// than "no" is his.  Not answered at all, he takes it for PASS.
class Asker {
 public:
  Asker(Loop& loop, int fd) : loop_(loop), fd_(fd) {}
  ~Asker();
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

  const LocalRequest& request() const { return request_; }
  pid_t pid() const;

  void Expect(size_t answers) { expected_ = answers; }
  void Answer(const LocalReply& reply, int passed_fd = -1);
  void Pass() { Answer(LocalReply{}); }
  void Know(const wire::Address& peer, const wire::Address& self, bool is_v6);
  void Refuse(int error, const std::string& text);

 private:
  friend class LocalServer;
  Loop& loop_;
  const int fd_;
  LocalRequest request_;
  size_t expected_ = 1;
  bool was_passed_ = false;
  bool is_answered_ = false;
};

class LocalServer {
 public:
  using OnRequest = std::function<void(const std::shared_ptr<Asker>&)>;
  // Of those who have not asked yet: the owner's, one other user's, all others'.
  static constexpr int kSilentMax = 256;
  static constexpr int kStrangersMax = 32;
  static constexpr int kAllStrangersMax = 128;
  static constexpr int64_t kSilentMs = 5000;

  // `owner`: whom a shim expects here.
  LocalServer(Loop& loop, OnRequest on_request, uid_t owner = geteuid(),
              int64_t silent_ms = kSilentMs);
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  // "NAME:UID:KEY:", what $NXPROXY_PORTER begins with.
  std::string Place() const;

 private:
  struct Silent {
    std::shared_ptr<Asker> asker;
    uid_t user;
    Loop::TimerId limit;
  };
  using SilentOnes = std::list<Silent>;

  void Accept();
  void MakeRoom(uid_t user);
  void Drop(SilentOnes::iterator silent);
  void Read(SilentOnes::iterator silent);

  Loop& loop_;
  const OnRequest on_request_;
  const uid_t owner_;
  const int64_t silent_ms_;
  int listener_ = -1;
  std::string name_;
  uint8_t key_[kLocalKeyBytes];
  SilentOnes silent_;  // the oldest first
  std::vector<std::weak_ptr<Asker>> asking_;
};

}  // namespace sekisho::nxproxy::client
