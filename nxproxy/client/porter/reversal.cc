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

// Nodes of one site are behind one firewall.
std::string PlaceOf(const Way& way) { return way.site.empty() ? way.target : "@" + way.site; }

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

void Reversal::Try(Session& session, const Way& way, bool waits, std::function<void(bool)> then) {
  const std::string place = PlaceOf(way);
  const auto known = known_.find(place);
  const bool is_known = known != known_.end() && known->second.until_ms > loop_.now_ms();
  if (!is_known) {
    Begin(session, way);
  }
  Known& now = known_[place];
  if (!waits || now.does_work || !now.is_tried) {
    then(now.does_work);
    return;
  }
  // Whoever is first tells him: the trial, or the limit.
  const auto waiting = std::make_shared<std::function<void(bool)>>(std::move(then));
  const auto tell = [waiting](bool does_work) {
    if (const auto told = std::exchange(*waiting, nullptr)) {
      told(does_work);
    }
  };
  now.waiting.push_back(tell);
  loop_.After(kComeMs, [this, place, tell] {
    known_[place].is_tried = false;  // nor does anybody wait after him
    tell(false);
  });
}

void Reversal::Begin(Session& session, const Way& way) {
  const std::string place = PlaceOf(way);
  Learn(place, false);
  if (door_.Open()) {
    known_[place].is_tried = true;
    Ask(session, way, kTrialMs, [this, place](int fd) {
      if (fd >= 0) {
        close(fd);
      }
      Learn(place, fd >= 0);
    });
  }
}

void Reversal::Invite(Session& session, const Way& way, OnStream on_stream) {
  Ask(session, way, kComeMs, [this, way, on_stream = std::move(on_stream)](int fd) {
    if (fd >= 0 && !Greet(fd, address(), way)) {
      Reset(fd);
      fd = -1;
    }
    if (fd < 0) {
      Learn(PlaceOf(way), false);
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

void Reversal::Learn(const std::string& place, bool does_work) {
  const auto waiting = std::move(known_[place].waiting);
  if (known_.size() > kKnownMax) {
    known_.clear();  // who waits there waits for his limit
  }
  known_[place] = {does_work, false, loop_.now_ms() + kKnownMs, {}};
  for (const auto& tell : waiting) {
    tell(does_work);
  }
}

}  // namespace sekisho::nxproxy::client
