// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/reach.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <limits>
#include <list>
#include <memory>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nxproxy/client/porter/call.h"
#include "nxproxy/client/porter/exec.h"
#include "nxproxy/client/porter/failures.h"
#include "nxproxy/client/porter/own_end.h"
#include "nxproxy/client/porter/pump.h"
#include "nxproxy/client/porter/relays.h"
#include "nxproxy/client/porter/sockets.h"

namespace sekisho::nxproxy::client {
namespace {

void Say(const std::string& line) { std::fprintf(stderr, "sekisho: %s\n", line.c_str()); }

int ExitCodeOf(wire::Code code) {
  const int error = wire::Info(code).error;
  return error == EACCES || error == EPERM || error == EDQUOT ? kExitRefused : kExitFailed;
}

// What every verb here needs: a loop and a session; `work` runs once it stands.
struct Visit {
  Loop loop;
  std::unique_ptr<Relays> relays;
  std::unique_ptr<OwnEnd> end;  // of encrypted streams
  std::list<std::unique_ptr<Greeting>> greetings;
  Failures failures{loop};
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
      Say(why);
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
    handlers.on_message = [this](const wire::Message& message) {
      if (message.verb == wire::Verb::kFailed) {
        failures.Take(message);
      }
    };
    relays = std::make_unique<Relays>(loop, server, options.verb, std::numeric_limits<int64_t>::max(), handlers);
    relays->Start();
    loop.Run();
    return exit_code;
  }
  bool WantsEncryption(const Options& options) const {
    return options.plan.is_encrypted || relays->session().welcome().encrypt != 0;
  }
  // Where the target is for the relay; `then` gets no address if it is nowhere or not to be reached,
  // after the user was told.
  struct Found {
    std::string address;
    wire::Code code = wire::Code::kOk;
  };
  void Resolve(const Options& options, const std::string& target, bool may_be_elsewhere,
               std::function<void(const Found&)> then) {
    wire::Message resolve;
    resolve.verb = wire::Verb::kResolve;
    resolve.address = target;
    relays->session().Ask(resolve, [=, this](const wire::Message& answer) {
      if (answer.verb != wire::Verb::kResolved || answer.address.empty()) {
        const Refusal refusal = RefusalOf(answer);
        if (may_be_elsewhere && refusal.code == wire::Code::kNoSuchEndpoint &&
            wire::ParseAddress(target) && !WantsEncryption(options)) {
          then({target});  // no endpoint: the relay's policy says whether it leads there
          return;
        }
        Say(target + ": " + ToText(refusal));
        then({"", refusal.code});
        return;
      }
      std::string error;
      if (WantsEncryption(options) && answer.encrypt == 0) {
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
  // The connection with that counter failed: the user is told why, within a second.
  void Explain(uint64_t counter, const std::string& target, wire::Code code,
               std::function<void(int exit_code)> then) {
    failures.Explain(counter, code, [target, then = std::move(then)](const Refusal& why) {
      Say(target + ": " + ToText(why));
      then(ExitCodeOf(why.code));
    });
  }
  uint64_t last_counter() const { return relays->session().last_counter(); }
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
    const int dialled = visit.Dial(address);
    *call = std::make_unique<Call>(
        visit.loop, dialled,
        [&, fd, call, counter = visit.last_counter()](int far, wire::Code code) {
          visit.loop.After(0, [&calls, call] { calls.erase(call); });
          if (far < 0) {
            Reset(fd);
            visit.Explain(counter, target, code, [](int) {});
            return;
          }
          visit.Greet(far, target, [&pump, fd](std::unique_ptr<Channel> end) {
            end != nullptr ? pump(fd, std::move(end)) : Reset(fd);
          });
        });
  };
  return visit.Run(options, server, [&](Session&) {
    visit.Resolve(options, target, false, [&](const Visit::Found& found) {
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
    visit.Resolve(options, target, true, [&](const Visit::Found& found) {
      if (found.address.empty()) {
        visit.End(ExitCodeOf(found.code));
        return;
      }
      const int dialled = visit.Dial(found.address);
      call = std::make_unique<Call>(
          visit.loop, dialled, [&, counter = visit.last_counter()](int fd, wire::Code code) {
            if (fd < 0) {
              visit.Explain(counter, target, code, [&](int exit_code) { visit.End(exit_code); });
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
