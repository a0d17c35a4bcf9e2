// SPDX-License-Identifier: Apache-2.0
// Load for tests/bench/relay/bench: both ends of TCP connections that go direct, through somebody's proxy, or
// through NXProxy (then the inside dials spares).  Prints one JSON line.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nxproxy/wire/ticket.h"
#include "tests/bench/relay/secure_end.h"

namespace {

using namespace sekisho::nxproxy;  // NOLINT
using Clock = std::chrono::steady_clock;

// "HOST:PORT,SESSION,HEX[,UPSTREAM]": a session that somebody else opened.
struct Door {
  wire::Address relay;
  uint64_t session = 0;
  std::string key;
  std::string upstream;
};

std::atomic<uint64_t> g_counter{1000};  // the session's owner has used some
wire::Address g_socks;                   // set: connections go through that SOCKS5 server
const bool g_is_secure = std::getenv("RELAY_LOAD_TLS") != nullptr;  // tput by TLS of our own

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::exit(1);
}

Door ParseDoor(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  Door door;
  door.relay = wire::ParseAddress(parts.at(0)).value();
  door.session = std::stoull(parts.at(1));
  for (size_t i = 0; i + 1 < parts.at(2).size(); i += 2) {
    door.key += static_cast<char>(std::stoi(parts[2].substr(i, 2), nullptr, 16));
  }
  if (parts.size() > 3) {
    door.upstream = parts[3];
  }
  return door;
}

void NoDelay(int fd) {
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

int ConnectDirect(const wire::Address& to) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_storage raw;
  const socklen_t length = ToSocket(to, raw);
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&raw), length) != 0) {
    if (fd >= 0) {
      close(fd);
    }
    return -1;
  }
  NoDelay(fd);
  return fd;
}

// RFC 1928, without authentication.
int Connect(const wire::Address& to) {
  if (!g_socks.is_set()) {
    return ConnectDirect(to);
  }
  const int fd = ConnectDirect(g_socks);
  std::string request = {5, 1, 0, 5, 1, 0, 1};  // greeting and CONNECT in one write
  request.append(reinterpret_cast<const char*>(to.ip.data()) + 12, 4);
  request += static_cast<char>(to.port >> 8);
  request += static_cast<char>(to.port & 255);
  char answer[12];  // to the greeting, and to CONNECT
  if (fd < 0 || send(fd, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size()) ||
      recv(fd, answer, sizeof answer, MSG_WAITALL) != sizeof answer || answer[3] != 0) {
    if (fd >= 0) {
      close(fd);
    }
    return -1;
  }
  return fd;
}

// The inside's or the plain server's loop: echoes, or (is_sink) counts in a thread of the connection's own.
class Server {
 public:
  Server(bool is_sink, int spares, std::vector<Door> doors) : is_sink_(is_sink), spares_(spares), doors_(std::move(doors)) {
    epoll_ = epoll_create1(0);
    if (doors_.empty()) {
      listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
      const int one = 1;
      setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    }
  }
  void Listen(const wire::Address& at) {
    sockaddr_storage address;
    const socklen_t length = ToSocket(at, address);
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(listener_, 4096) != 0) {
      Die("listen");
    }
    Add(listener_);
  }
  void Start() {
    for (int i = 0; i < (doors_.empty() ? 0 : spares_); ++i) {
      Dial();
    }
    std::thread([this] { Run(); }).detach();
  }

 private:
  void Add(int fd) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }
  // As the porter does: the preface goes with the SYN.
  void Dial() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    std::string bytes;
    if (doors_.size() > 1) {  // through the inner relay
      bytes = wire::Seal({.kind = wire::Kind::kConnect, .session = doors_[0].session, .counter = ++g_counter,
                          .target = doors_[0].upstream}, doors_[0].key);
    }
    bytes += wire::Seal({.kind = wire::Kind::kAccept, .session = doors_.back().session, .counter = ++g_counter},
                        doors_.back().key);
    sockaddr_storage raw;
    const socklen_t length = ToSocket(doors_.front().relay, raw);
    const int on = 1;
    NoDelay(fd);
    setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &on, sizeof on);
    if (sendto(fd, bytes.data(), bytes.size(), MSG_FASTOPEN | MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&raw), length) !=
        static_cast<ssize_t>(bytes.size())) {
      Die("dial");
    }
    waits_[fd] = true;
    Add(fd);
  }
  void Sink(int fd) {
    std::thread([fd] {
      std::vector<char> buffer(256 * 1024);
      uint64_t total = 0;
      auto end = g_is_secure ? std::make_unique<SecureEnd>(fd, true) : nullptr;
      for (ssize_t got; (got = end ? end->Receive(buffer.data(), buffer.size())
                                   : recv(fd, buffer.data(), buffer.size(), 0)) > 0;) {
        total += static_cast<uint64_t>(got);
      }
      send(fd, &total, sizeof total, MSG_NOSIGNAL);  // in plain text: it ends the measurement
      close(fd);
    }).detach();
  }
  void Run() {
    epoll_event events[256];
    for (;;) {
      const int count = epoll_wait(epoll_, events, 256, -1);
      for (int i = 0; i < count; ++i) {
        Handle(events[i].data.fd);
      }
    }
  }
  void Handle(int fd) {
    if (fd == listener_) {
      for (int got; (got = accept4(listener_, nullptr, nullptr, is_sink_ ? 0 : SOCK_NONBLOCK)) >= 0;) {
        NoDelay(got);
        is_sink_ ? Sink(got) : Add(got);
      }
      return;
    }
    if (const auto waits = waits_.find(fd); waits != waits_.end()) {
      waits_.erase(waits);
      Opened(fd);
      Dial();  // the next, once this one is served
      return;
    }
    Echo(fd);
  }
  // The opening, and what may have come with it.
  void Opened(int fd) {
    char bytes[wire::kOpeningBytes + 4096];
    const ssize_t got = recv(fd, bytes, is_sink_ ? wire::kOpeningBytes : sizeof bytes, 0);
    if (got < static_cast<ssize_t>(wire::kOpeningBytes)) {  // the relay sends it whole
      close(fd);
    } else if (is_sink_) {
      epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
      Sink(fd);
    } else if (got > static_cast<ssize_t>(wire::kOpeningBytes)) {
      send(fd, bytes + wire::kOpeningBytes, static_cast<size_t>(got) - wire::kOpeningBytes, MSG_NOSIGNAL);
    }
  }
  static void Echo(int fd) {
    char buffer[16384];
    const ssize_t got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0) {
      send(fd, buffer, static_cast<size_t>(got), MSG_NOSIGNAL);
    } else if (got == 0 || errno != EAGAIN) {
      close(fd);
    }
  }

  const bool is_sink_;
  const int spares_;
  const std::vector<Door> doors_;
  int epoll_ = -1;
  int listener_ = -1;
  std::map<int, bool> waits_;
};

double Seconds(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

// What the sink has counted of what was sent until `seconds` after `began`.
uint64_t Pour(const wire::Address& to, Clock::time_point began, double seconds) {
  const int fd = Connect(to);
  if (fd < 0) {
    Die("connect");
  }
  const std::vector<char> buffer(256 * 1024, 'x');
  auto end = g_is_secure ? std::make_unique<SecureEnd>(fd, false) : nullptr;
  while (Seconds(began) < seconds) {
    const ssize_t sent =
        end ? end->Send(buffer.data(), buffer.size()) : send(fd, buffer.data(), buffer.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      Die("send");
    }
  }
  if (end) {
    end->Finish();
  }
  shutdown(fd, SHUT_WR);
  uint64_t total = 0;
  if (recv(fd, &total, sizeof total, MSG_WAITALL) != sizeof total) {
    Die("count");
  }
  close(fd);
  return total;
}

// One byte and its echo.
bool IsAnswered(const wire::Address& to) {
  const int fd = Connect(to);
  char byte = 'w';
  const bool is_answered = fd >= 0 && send(fd, &byte, 1, MSG_NOSIGNAL) == 1 && recv(fd, &byte, 1, 0) == 1;
  if (fd >= 0) {
    close(fd);
  }
  return is_answered;
}

// Until all is as it will be: the way answers, and every spare that was dialled at the start has been used.
void WarmUp(const wire::Address& to, bool is_sink, int connections) {
  const auto began = Clock::now();
  for (int done = 0; done < connections;) {
    if (is_sink) {
      Pour(to, began, 0);
      ++done;
    } else if (IsAnswered(to)) {
      ++done;
    } else if (Seconds(began) > 10) {
      Die("no answer within 10 s");
    } else {
      std::this_thread::yield();  // who listens there has only been started
    }
  }
}

void Throughput(const wire::Address& to, int streams, double seconds) {
  std::atomic<uint64_t> delivered{0};
  std::vector<std::thread> threads;
  const auto began = Clock::now();
  for (int i = 0; i < streams; ++i) {
    threads.emplace_back([&] { delivered += Pour(to, began, seconds); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const double mib = static_cast<double>(delivered) / (1 << 20);
  std::printf("{\"mib_s\": %.1f, \"gib\": %.4f}\n", mib / Seconds(began), mib / 1024);
}

void Ping(const wire::Address& to, int rounds) {
  const int fd = Connect(to);
  std::vector<double> times;
  char bytes[64] = {};
  for (int i = 0; i < rounds + 200; ++i) {
    const auto began = Clock::now();
    send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
    if (recv(fd, bytes, sizeof bytes, MSG_WAITALL) != sizeof bytes) {
      Die("echo");
    }
    if (i >= 200) {
      times.push_back(Seconds(began) * 1e6);
    }
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  std::printf("{\"us\": %.2f}\n", times[times.size() / 2]);
}

void Connections(const wire::Address& to, int at_a_time, double seconds) {
  std::atomic<uint64_t> done{0};
  std::atomic<uint64_t> failed{0};
  std::vector<std::thread> threads;
  const auto began = Clock::now();
  for (int i = 0; i < at_a_time; ++i) {
    threads.emplace_back([&] {
      while (Seconds(began) < seconds) {
        const int fd = Connect(to);
        char byte = 'c';
        if (fd < 0 || send(fd, &byte, 1, MSG_NOSIGNAL) != 1 || recv(fd, &byte, 1, 0) != 1) {
          ++failed;
        } else {
          ++done;
        }
        const linger now{.l_onoff = 1, .l_linger = 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close(fd);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::printf("{\"per_s\": %.1f, \"failed\": %llu}\n", static_cast<double>(done) / Seconds(began),
              static_cast<unsigned long long>(failed.load()));
}

// The least that a relay can do for a message, and nothing else: the floor of what a hop costs on this machine.
[[noreturn]] void Bare(const wire::Address& at, const wire::Address& to) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_storage raw;
  const socklen_t length = ToSocket(at, raw);
  const int one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, reinterpret_cast<sockaddr*>(&raw), length) != 0 || listen(listener, 16) != 0) {
    Die("bare");
  }
  const int epoll = epoll_create1(0);
  for (;;) {
    const int ends[2] = {accept(listener, nullptr, nullptr), ConnectDirect(to)};
    NoDelay(ends[0]);
    for (int i = 0; i < 2; ++i) {
      epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.fd = ends[i]}};
      epoll_ctl(epoll, EPOLL_CTL_ADD, ends[i], &event);
    }
    char buffer[16384];
    for (bool is_open = true; is_open;) {  // one connection at a time
      epoll_event event;
      epoll_wait(epoll, &event, 1, -1);
      const ssize_t got = recv(event.data.fd, buffer, sizeof buffer, MSG_DONTWAIT);
      const int to_fd = event.data.fd == ends[0] ? ends[1] : ends[0];
      is_open = (got > 0 && send(to_fd, buffer, static_cast<size_t>(got), MSG_NOSIGNAL) == got) ||
                (got < 0 && errno == EAGAIN);
    }
    close(ends[0]);
    close(ends[1]);
  }
}

// Opens streams, each used once, says so, and holds them until stdin ends.
void Idle(const wire::Address& to, int streams) {
  std::vector<int> open;
  for (int i = 0; i < streams; ++i) {
    const int fd = Connect(to);
    char byte = 'i';
    if (fd < 0 || send(fd, &byte, 1, MSG_NOSIGNAL) != 1 || recv(fd, &byte, 1, 0) != 1) {
      Die("idle");
    }
    open.push_back(fd);
  }
  std::printf("{\"open\": %zu}\n", open.size());
  std::fflush(stdout);
  char byte;
  while (read(0, &byte, 1) > 0) {
  }
}

}  // namespace

// load MODE NUMBER SECONDS CONNECT[/SOCKS] LISTEN [DOOR [DOOR]]: LISTEN is a port, or "spares=N" with one door (outer
// relay) or two (inner, outer); "none": the other end is another process, `load serve 0 0 ADDRESS:PORT 0`.
int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "load tput|ping|conn|idle|serve|bare NUMBER SECONDS HOST:PORT[/SOCKS] PORT|spares=N [DOOR [DOOR]]\n");
    return 64;
  }
  const std::string mode = argv[1];
  const int number = std::atoi(argv[2]);
  const double seconds = std::atof(argv[3]);
  const std::string target = argv[4];
  const size_t through = target.find('/');
  const auto to = wire::ParseAddress(target.substr(0, through)).value();
  if (through != std::string::npos) {
    g_socks = wire::ParseAddress(target.substr(through + 1)).value();
  }
  const std::string listen = argv[5];
  std::vector<Door> doors;
  for (int i = 6; i < argc; ++i) {
    doors.push_back(ParseDoor(argv[i]));
  }
  const bool is_spares = listen.starts_with("spares=");
  const int spares = is_spares ? std::atoi(listen.c_str() + 7) : 0;
  if (mode == "ping") {  // path cost: everything on one processor
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  if (mode == "bare") {  // a relay of one connection at a time, from CONNECT to the port LISTEN
    Bare(to, wire::ParseAddress("127.0.0.1:" + listen).value());
  }
  if (mode == "serve") {  // a sink at CONNECT, until it is killed
    Server sink(true, 0, {});
    sink.Listen(to);
    sink.Start();
    pause();
  }
  Server server(mode == "tput", spares, doors);
  if (listen != "none") {
    if (!is_spares) {
      server.Listen(wire::ParseAddress("127.0.0.1:" + listen).value());
    }
    server.Start();
  }
  WarmUp(to, mode == "tput", is_spares ? spares : 1);
  if (mode == "tput") {
    Throughput(to, number, seconds);
  } else if (mode == "ping") {
    Ping(to, number);
  } else if (mode == "conn") {
    Connections(to, number, seconds);
  } else if (mode == "idle") {
    Idle(to, number);
  }
  std::fflush(stdout);
  _exit(0);
}
