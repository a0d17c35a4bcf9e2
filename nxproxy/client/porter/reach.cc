// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/reach.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <list>
#include <memory>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nxproxy/client/porter/exec.h"
#include "nxproxy/client/porter/own_end.h"
#include "nxproxy/client/porter/pump.h"
#include "nxproxy/client/porter/relays.h"
#include "nxproxy/client/porter/sockets.h"

namespace sekisho::nxproxy::client {
namespace {

constexpr int64_t kOpeningMs = 15'000;  // the relay's own limits are shorter

void Say(const std::string& line) { std::fprintf(stderr, "sekisho: %s\n", line.c_str()); }

int ExitCodeOf(wire::Code code) {
  const int error = wire::Info(code).error;
  return error == EACCES || error == EPERM || error == EDQUOT ? kExitRefused : kExitFailed;
}

// A connection to `target` on its way: waits for the relay's opening.
class Call {
 public:
  using OnOpen = std::function<void(int fd, wire::Code code)>;  // fd is -1 if it failed

  Call(Loop& loop, int fd, OnOpen on_open) : loop_(loop), fd_(fd), on_open_(std::move(on_open)) {
    if (fd_ >= 0) {
      loop_.Watch(fd_, EPOLLIN, [this](uint32_t) { OnEvents(); });
    }
    limit_ = loop_.After(fd_ < 0 ? 0 : kOpeningMs, [this] { End(-1, wire::Code::kTargetTimeout); });
  }
  ~Call() { Drop(); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  void Drop() {
    loop_.Cancel(limit_);
    if (fd_ >= 0) {
      loop_.Forget(fd_);
      close(fd_);
    }
  }
  void End(int fd, wire::Code code) {
    const auto on_open = on_open_;
    if (fd >= 0) {
      loop_.Forget(fd_);
      fd_ = -1;
    }
    on_open(fd, code);  // may destroy us
  }
  void OnEvents() {
    char buffer[wire::kOpeningBytes];
    const ssize_t got = recv(fd_, buffer, wire::kOpeningBytes - opening_.size(), 0);
    if (got < 0 && errno == EAGAIN) {
      return;
    }
    if (got > 0) {
      opening_.append(buffer, static_cast<size_t>(got));
      if (opening_.size() < wire::kOpeningBytes) {
        return;
      }
    }
    const auto opening = wire::DecodeOpening(opening_);
    const wire::Code code = opening ? opening->code : wire::Code::kTargetUnreachable;
    End(code == wire::Code::kOk ? fd_ : -1, code);
  }

  Loop& loop_;
  int fd_;
  const OnOpen on_open_;
  std::string opening_;
  Loop::TimerId limit_ = 0;
};

// What every verb here needs: a loop and a session; `work` runs once it stands.
struct Visit {
  Loop loop;
  std::unique_ptr<Relays> relays;
  std::unique_ptr<OwnEnd> end;  // of encrypted streams
  std::list<std::unique_ptr<Greeting>> greetings;
  int exit_code = 0;
  bool is_up = false;

  void End(int code) {
    exit_code = code;
    relays->Leave();
    loop.After(20, [this] { loop.Stop(); });
  }
  int Run(const Options& options, const wire::HostPort& server,
          std::function<void(Session&)> work) {
    std::signal(SIGPIPE, SIG_IGN);
    Session::Handlers handlers;
    handlers.on_up = [this, work](bool) {
      if (!is_up) {
        is_up = true;
        work(relays->session());
      }
    };
    handlers.on_down = [this](const std::string& why) {
      Say("the relay " + relays->server_text() + " is away: " + why);
      if (!is_up) {
        exit_code = kExitFailed;
        loop.Stop();
      }
    };
    handlers.on_refused = [this](const Refusal& refusal) {
      Say(ToText(refusal));
      exit_code = ExitCodeOf(refusal.code);
      loop.Stop();
    };
    handlers.on_message = [](const wire::Message& message) {
      if (message.verb == wire::Verb::kFailed) {
        Say(ToText(RefusalOf(message)));
      }
    };
    relays = std::make_unique<Relays>(loop, server, options.verb, handlers);
    relays->Start();
    loop.Run();
    return exit_code;
  }
  // Where the target is for the relay; `then` gets no address if it is nowhere or not to be reached,
  // after the user was told.
  struct Found {
    std::string address;
    wire::Code code = wire::Code::kOk;
  };
  void Resolve(const Options& options, const std::string& target,
               std::function<void(const Found&)> then) {
    wire::Message resolve;
    resolve.verb = wire::Verb::kResolve;
    resolve.address = target;
    relays->session().Ask(resolve, [this, options, target, then](const wire::Message& answer) {
      if (answer.verb != wire::Verb::kResolved || answer.address.empty()) {
        const Refusal refusal = RefusalOf(answer);
        Say(target + ": " + ToText(refusal));
        then({"", refusal.code});
        return;
      }
      const bool wants_encryption =
          options.plan.is_encrypted || relays->session().welcome().encrypt != 0;
      std::string error;
      if (wants_encryption && answer.encrypt == 0) {
        error = kNotEncrypted;
      } else if (answer.encrypt != 0) {
        end = OwnEnd::Load(error);
      }
      if (!error.empty()) {
        Say(target + ": " + error);
        then({"", wire::Code::kDenied});
        return;
      }
      then({answer.address});
    });
  }
  // `fd` as an end of ours: at once, or when the far end of an encrypted stream has greeted.
  // nullptr: it failed, and the user was told.
  using OnEnd = std::function<void(std::unique_ptr<Channel>)>;
  void Greet(int fd, const std::string& target, OnEnd on_end) {
    if (end == nullptr) {
      on_end(std::make_unique<Channel>(fd));
      return;
    }
    const auto refused = [target](const std::string& why) { Say(target + ": " + why); };
    const auto place = greetings.emplace(greetings.end());
    *place = std::make_unique<Greeting>(
        loop, end->Connect(fd, target),
        [this, place, refused, on_end](std::unique_ptr<TlsStream> stream, const std::string& why) {
          loop.After(0, [this, place] { greetings.erase(place); });
          if (stream == nullptr) {
            refused(why);
          } else {
            stream->OnRefused(refused);
          }
          on_end(std::move(stream));
        });
  }
  int Dial(const std::string& target) {
    const std::string preface = relays->session().MintConnect(target, {}, true);
    return preface.empty() ? -1 : DialWith(relays->dial_address(), false, preface);
  }
};

// "8888" or "ADDRESS:8888".
int ListenAt(const std::string& local) {
  const auto place =
      wire::ParseAddress(local.find(':') == std::string::npos ? "127.0.0.1:" + local : local);
  if (!place) {
    errno = EINVAL;
    return -1;
  }
  sockaddr_storage address;
  const socklen_t length = wire::ToSocket(*place, address);
  const int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(fd, 128) != 0) {
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

}  // namespace

int Forward(const Options& options, const wire::HostPort& server, const std::string& local,
            const std::string& target) {
  const int listener = ListenAt(local);
  if (listener < 0) {
    Say("port " + local + ": " + std::strerror(errno));
    return errno == EINVAL ? kExitUsage : kExitFailed;
  }
  Visit visit;
  std::list<std::unique_ptr<Call>> calls;
  std::list<std::unique_ptr<Pump>> pumps;
  const auto pump = [&](int fd, std::unique_ptr<Channel> far) {
    const auto place = pumps.emplace(pumps.end());
    *place = std::make_unique<Pump>(
        visit.loop, std::make_unique<Channel>(fd), std::move(far),
        [&, place] { visit.loop.After(0, [&pumps, place] { pumps.erase(place); }); });
  };
  const auto join = [&](int fd, const std::string& address) {
    const auto call = calls.emplace(calls.end());
    *call = std::make_unique<Call>(
        visit.loop, visit.Dial(address), [&, fd, call](int far, wire::Code code) {
          visit.loop.After(0, [&calls, call] { calls.erase(call); });
          if (far < 0) {
            Say(target + ": " + wire::Info(code).words);
            Reset(fd);
            return;
          }
          visit.Greet(far, target, [&pump, fd](std::unique_ptr<Channel> end) {
            end != nullptr ? pump(fd, std::move(end)) : Reset(fd);
          });
        });
  };
  return visit.Run(options, server, [&](Session&) {
    visit.Resolve(options, target, [&](const Visit::Found& found) {
      if (found.address.empty()) {
        visit.End(ExitCodeOf(found.code));
        return;
      }
      Say(wire::ToText(LocalOf(listener)) + " leads to " + target);
      visit.loop.Watch(listener, EPOLLIN, [&, address = found.address](uint32_t) {
        const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
          join(fd, address);
        }
      });
    });
  });
}

int Connect(const Options& options, const wire::HostPort& server, const std::string& target) {
  Visit visit;
  std::unique_ptr<Channel> connection;
  std::unique_ptr<Call> call;
  const auto greeted = [&](std::unique_ptr<Channel> end) {
    connection = std::move(end);
    if (connection == nullptr) {
      visit.End(kExitRefused);
    } else {
      visit.loop.Stop();
    }
  };
  const int code = visit.Run(options, server, [&](Session&) {
    visit.Resolve(options, target, [&](const Visit::Found& found) {
      if (found.address.empty()) {
        visit.End(ExitCodeOf(found.code));
        return;
      }
      call = std::make_unique<Call>(visit.loop, visit.Dial(found.address),
                                    [&](int fd, wire::Code code) {
                                      if (fd < 0) {
                                        Say(target + ": " + wire::Info(code).words);
                                        visit.End(ExitCodeOf(code));
                                      } else {
                                        visit.Greet(fd, target, greeted);
                                      }
                                    });
    });
  });
  call.reset();
  if (connection == nullptr) {
    return code;
  }
  const int error = PumpStandard(*connection);
  if (error != 0) {
    Say(target + ": " + std::strerror(error));
  }
  return error == 0 ? 0 : kExitBroken;
}

int Stats(const Options& options, const wire::HostPort& server) {
  Visit visit;
  std::function<void(uint64_t)> ask = [&](uint64_t place) {
    wire::Message stats;
    stats.verb = wire::Verb::kStats;
    stats.endpoint = place;
    visit.relays->session().Ask(stats, [&](const wire::Message& answer) {
      if (answer.verb != wire::Verb::kReport) {
        const Refusal refusal = RefusalOf(answer);
        Say(ToText(refusal));
        visit.End(ExitCodeOf(refusal.code));
        return;
      }
      std::fwrite(answer.text.data(), 1, answer.text.size(), stdout);
      std::fputc('\n', stdout);
      std::fflush(stdout);
      answer.endpoint != 0 ? ask(answer.endpoint) : visit.End(0);
    });
  };
  return visit.Run(options, server, [&](Session&) { ask(0); });
}

}  // namespace sekisho::nxproxy::client
