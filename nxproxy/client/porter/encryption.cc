// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/encryption.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nxproxy/client/porter/sockets.h"
#include "nxproxy/client/rules.h"

namespace sekisho::nxproxy::client {
namespace {

void NoDelay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// The address that the porter knocks from: nobody else uses it.
wire::Address Threshold() {
  wire::Address here;
  here.ip[10] = here.ip[11] = 0xff;
  std::memcpy(here.ip.data() + 12, kKnockIpV4, sizeof kKnockIpV4);
  return here;
}

}  // namespace

Encryption::Encryption(Loop& loop, std::unique_ptr<OwnEnd> end, Say say)
    : loop_(loop), end_(std::move(end)), say_(std::move(say)), door_(loop, Threshold()) {
  if (!door_.Open()) {
    std::perror("sekisho: the porter's door");
    std::abort();
  }
}

// A greeting that is over is destroyed a moment later: it is calling us.
void Encryption::Start(std::unique_ptr<TlsStream> stream, Greeting::OnDone on_done) {
  const auto place = greetings_.emplace(greetings_.end());
  *place = std::make_unique<Greeting>(
      loop_, std::move(stream),
      [this, place, on_done = std::move(on_done)](std::unique_ptr<TlsStream> greeted,
                                                  const std::string& why) {
        loop_.After(0, [this, place] { greetings_.erase(place); });
        on_done(std::move(greeted), why);
      });
}

void Encryption::Greet(int fd, std::vector<std::string> names, OnGreeted on_greeted) {
  Start(end_.Get(greetings_.empty()).Accept(fd, std::move(names)),
        [this, on_greeted = std::move(on_greeted)](std::unique_ptr<TlsStream> stream,
                                                   const std::string& why) {
          if (stream == nullptr) {
            say_("a peer was turned away: " + why);
            return;
          }
          on_greeted(std::move(stream));
        });
}

void Encryption::Join(std::unique_ptr<Channel> program, std::unique_ptr<Channel> far) {
  NoDelay(program->fd());
  const auto place = pumps_.emplace(pumps_.end());
  *place = std::make_unique<Pump>(loop_, std::move(program), std::move(far), [this, place] {
    loop_.After(0, [this, place] { pumps_.erase(place); });
  });
}

std::string Encryption::Expect(const Destination& destination) {
  const std::string cookie = door_.NewCookie();
  if (!cookie.empty()) {
    door_.Expect(cookie, [this, destination](int fd) { Lead(fd, destination); });
  }
  return cookie;
}

void Encryption::Lead(int fd, const Destination& destination) {
  const int far = destination.dial();
  if (far < 0) {
    Reset(fd);
    return;
  }
  const auto refused = [say = say_, name = destination.name](const std::string& why) {
    say("connection to " + name + " failed: " + why);
  };
  Start(end_.Get(greetings_.empty()).Connect(far, destination.name),
        [this, fd, refused](std::unique_ptr<TlsStream> stream, const std::string& why) {
          if (stream == nullptr) {
            refused(why);
            Reset(fd);
            return;
          }
          stream->OnRefused(refused);
          Join(std::make_unique<Channel>(fd), std::move(stream));
        });
}

}  // namespace sekisho::nxproxy::client
