// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/reversal.h"

#include <memory>
#include <utility>

#include <openssl/sha.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nxproxy/client/porter/sockets.h"

namespace sekisho::nxproxy::client {
namespace {

constexpr int64_t kTrialMs = 5000;
constexpr int64_t kComeMs = 1000;  // it worked before
constexpr int64_t kKnownMs = 600'000;
constexpr size_t kKnownMax = 1024;

wire::Address Anywhere(uint16_t port = 0) {
  wire::Address address;
  address.ip[10] = address.ip[11] = 0xff;
  address.port = port;
  return address;
}

// As the relay tells an inside who came.
bool Greet(int fd, const wire::Address& peer, const Way& way) {
  wire::Opening opening;
  opening.peer = peer;
  opening.local = wire::ParseAddress(way.target).value_or(wire::Address{});
  opening.endpoint = way.endpoint;
  const std::string bytes = wire::Encode(opening);
  return send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

}  // namespace

std::string ShownOf(const std::string& cookie) {
  std::string shown(SHA256_DIGEST_LENGTH, 0);
  SHA256(reinterpret_cast<const unsigned char*>(cookie.data()), cookie.size(),
         reinterpret_cast<unsigned char*>(shown.data()));
  return shown;
}
static_assert(Door::kCookieBytes == SHA256_DIGEST_LENGTH);

Reversal::Reversal(Loop& loop, const wire::Address& here)
    : loop_(loop), here_(here), door_(loop, Anywhere()) {}

wire::Address Reversal::address() const {
  wire::Address address = here_;
  address.port = door_.port();
  return address;
}

bool Reversal::Works(Session& session, const Way& way) {
  const auto known = known_.find(way.target);
  if (known != known_.end() && known->second.until_ms > loop_.now_ms()) {
    return known->second.does_work;
  }
  Learn(way.target, false);
  if (door_.Open()) {
    Ask(session, way, kTrialMs, [this, target = way.target](int fd) {
      if (fd >= 0) {
        close(fd);
        Learn(target, true);
      }
    });
  }
  return false;
}

void Reversal::Invite(Session& session, const Way& way, OnStream on_stream) {
  Ask(session, way, kComeMs, [this, way, on_stream = std::move(on_stream)](int fd) {
    if (fd >= 0 && !Greet(fd, address(), way)) {
      Reset(fd);
      fd = -1;
    }
    if (fd < 0) {
      Learn(way.target, false);
    }
    on_stream(fd);
  });
}

void Reversal::Ask(Session& session, const Way& way, int64_t limit_ms, OnStream on_stream) {
  const std::string cookie = door_.NewCookie();
  if (cookie.empty()) {
    on_stream(-1);
    return;
  }
  const std::string shown = ShownOf(cookie);
  // Whoever is first ends it: the connection, a refusal, the limit.
  const auto pending = std::make_shared<OnStream>(std::move(on_stream));
  const auto end = [this, pending, shown](int fd) {
    if (const OnStream told = std::exchange(*pending, nullptr)) {
      door_.Forget(shown);
      told(fd);
    } else if (fd >= 0) {
      Reset(fd);
    }
  };
  door_.Expect(shown, end);
  loop_.After(limit_ms, [end] { end(-1); });
  wire::Message invite;
  invite.verb = wire::Verb::kInvite;
  invite.endpoint = way.endpoint;
  invite.address = wire::ToText(address());
  invite.cookie = cookie;
  session.Ask(invite, [end](const wire::Message& answer) {
    if (answer.verb != wire::Verb::kDone) {
      end(-1);
    }
  });
}

void Reversal::Learn(const std::string& target, bool does_work) {
  if (known_.size() >= kKnownMax) {
    known_.clear();
  }
  known_[target] = {does_work, loop_.now_ms() + kKnownMs};
}

}  // namespace sekisho::nxproxy::client
