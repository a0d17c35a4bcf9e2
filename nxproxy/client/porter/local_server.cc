// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/local_server.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/epoll.h>
#include <unistd.h>

namespace sekisho::nxproxy::client {
namespace {

constexpr size_t kAskingMax = 256;  // who have shown the key

std::string Hex(const uint8_t* bytes, size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

ucred PeerOf(int fd) {
  ucred credential{};
  socklen_t length = sizeof credential;
  getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credential, &length);
  return credential;
}

}  // namespace

Asker::~Asker() {
  loop_.Forget(fd_);
  close(fd_);
}

pid_t Asker::pid() const { return PeerOf(fd_).pid; }

void Asker::Answer(const LocalReply& reply, int passed_fd) {
  const bool is_no =
      reply.answer == LocalAnswer::kPass || reply.answer == LocalAnswer::kRefused;
  was_passed_ = was_passed_ || reply.answer == LocalAnswer::kPass;
  expected_ -= expected_ > 0 ? 1 : 0;
  if (is_answered_ || (is_no && expected_ > 0)) {
    return;
  }
  is_answered_ = true;
  LocalReply copy = is_no && was_passed_ ? LocalReply{} : reply;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part = {&copy, sizeof copy};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (passed_fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof passed_fd);
    std::memcpy(CMSG_DATA(header), &passed_fd, sizeof passed_fd);
  }
  sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);  // he may have gone: nothing to be done
}

void Asker::Know(const wire::Address& peer, const wire::Address& self, bool is_v6) {
  LocalReply reply;
  reply.answer = LocalAnswer::kKnown;
  reply.peer = peer;
  reply.self = self;
  reply.flags = is_v6 ? static_cast<uint32_t>(kIsV6) : 0;
  Answer(reply);
}

void Asker::Refuse(int error, const std::string& text) {
  LocalReply reply;
  reply.answer = LocalAnswer::kRefused;
  reply.error = error;
  std::strncpy(reply.text, text.c_str(), sizeof reply.text - 1);
  Answer(reply);
}

LocalServer::LocalServer(Loop& loop, OnRequest on_request, uid_t owner, int64_t silent_ms)
    : loop_(loop), on_request_(std::move(on_request)), owner_(owner), silent_ms_(silent_ms) {
  uint8_t name[8];
  if (RAND_bytes(key_, sizeof key_) != 1 || RAND_bytes(name, sizeof name) != 1) {
    std::abort();
  }
  name_ = "nxproxy-" + Hex(name, sizeof name);
  sockaddr_storage address;
  const socklen_t length = AbstractAddress(name_.c_str(), address);
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(listener_, 512) != 0) {
    std::perror("sekisho: the porter's socket");
    std::abort();
  }
  loop_.Watch(listener_, EPOLLIN, [this](uint32_t) { Accept(); });
}

LocalServer::~LocalServer() {
  loop_.Forget(listener_);
  close(listener_);
  while (!silent_.empty()) {
    Drop(silent_.begin());
  }
}

std::string LocalServer::Place() const {
  return name_ + ":" + std::to_string(owner_) + ":" + Hex(key_, sizeof key_) + ":";
}

void LocalServer::Accept() {
  const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    return;
  }
  const uid_t user = PeerOf(fd).uid;
  MakeRoom(user);
  const auto silent =
      silent_.insert(silent_.end(), Silent{std::make_shared<Asker>(loop_, fd), user, 0});
  silent->limit = loop_.After(silent_ms_, [this, silent] { Drop(silent); });
  loop_.Watch(fd, EPOLLIN, [this, silent](uint32_t) { Read(silent); });
}

// Anybody on this host may connect, as many users if he has a user namespace.  For one too many the oldest of his own
// goes, never the owner's: who means to ask does so at once.
void LocalServer::MakeRoom(uid_t user) {
  const auto is_his = [user](const Silent& one) { return one.user == user; };
  const auto is_strangers = [this](const Silent& one) { return one.user != owner_; };
  const bool is_owner = user == owner_;
  if (std::count_if(silent_.begin(), silent_.end(), is_his) >=
      (is_owner ? kSilentMax : kStrangersMax)) {
    Drop(std::find_if(silent_.begin(), silent_.end(), is_his));
  } else if (!is_owner && std::count_if(silent_.begin(), silent_.end(), is_strangers) >=
                              kAllStrangersMax) {
    Drop(std::find_if(silent_.begin(), silent_.end(), is_strangers));
  }
}

// Closes it, unless somebody else holds the asker.
void LocalServer::Drop(SilentOnes::iterator silent) {
  loop_.Cancel(silent->limit);
  loop_.Forget(silent->asker->fd_);
  silent_.erase(silent);
}

void LocalServer::Read(SilentOnes::iterator silent) {
  const std::shared_ptr<Asker> asker = silent->asker;
  LocalRequest& request = asker->request_;
  const ssize_t got = recv(asker->fd_, &request, sizeof request, MSG_TRUNC);
  if (got < 0 && errno == EAGAIN) {
    return;
  }
  Drop(silent);
  if (got != sizeof request || request.version != kLocalVersion ||
      CRYPTO_memcmp(request.key, key_, sizeof key_) != 0) {
    return;
  }
  std::erase_if(asking_, [](const auto& one) { return one.expired(); });
  if (asking_.size() < kAskingMax) {
    asking_.push_back(asker);
    on_request_(asker);
  }
}

}  // namespace sekisho::nxproxy::client
