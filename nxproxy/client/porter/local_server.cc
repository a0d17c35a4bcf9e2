// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/local_server.h"

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

constexpr size_t kAskersMax = 256;

std::string Hex(const uint8_t* bytes, size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

}  // namespace

Asker::~Asker() {
  loop_.Forget(fd_);
  close(fd_);
}

pid_t Asker::pid() const {
  ucred credential{};
  socklen_t length = sizeof credential;
  getsockopt(fd_, SOL_SOCKET, SO_PEERCRED, &credential, &length);
  return credential.pid;
}

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

LocalServer::LocalServer(Loop& loop, OnRequest on_request)
    : loop_(loop), on_request_(std::move(on_request)) {
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
}

std::string LocalServer::Place() const { return name_ + ":" + Hex(key_, sizeof key_) + ":"; }

void LocalServer::Accept() {
  const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    return;
  }
  std::erase_if(reading_, [](const auto& one) { return one.second.expired(); });
  if (reading_.size() >= kAskersMax) {
    close(fd);
    return;
  }
  auto asker = std::make_shared<Asker>(loop_, fd);
  reading_[fd] = asker;
  loop_.Watch(fd, EPOLLIN, [this, asker](uint32_t) { Read(asker); });
}

void LocalServer::Read(const std::shared_ptr<Asker>& asker) {
  const std::shared_ptr<Asker> kept = asker;  // the watch holds the other reference
  LocalRequest& request = kept->request_;
  const ssize_t got = recv(kept->fd_, &request, sizeof request, MSG_TRUNC);
  if (got < 0 && errno == EAGAIN) {
    return;
  }
  loop_.Forget(kept->fd_);
  if (got == sizeof request && request.version == kLocalVersion &&
      CRYPTO_memcmp(request.key, key_, sizeof key_) == 0) {
    on_request_(kept);
  }
}

}  // namespace sekisho::nxproxy::client
