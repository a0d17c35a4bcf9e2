// SPDX-License-Identifier: Apache-2.0
// Round trips between hosts in network namespaces: 8 bytes to and fro on TCP, a number of pairs at
// a time.
//
//   wan_prober respond HOSTS                     answers on every host, until its parent ends
//   wan_prober probe HOSTS PAIRS AT_ONCE PINGS   prints for each pair: i j the quickest round trip
//   in us
//
// HOSTS has lines "host NAME ADDRESS NETNS", PAIRS lines "i j" with numbers of hosts.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kPort = 7799;
constexpr int kBytes = 8;

struct Host {
  sockaddr_in address;
  std::string netns;
};

[[noreturn]] void Die(const std::string& what) {
  fprintf(stderr, "wan_prober: %s: %s\n", what.c_str(), strerror(errno));
  exit(1);
}

std::vector<Host> ReadHosts(const char* path) {
  std::ifstream file(path);
  std::vector<Host> hosts;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, name, address;
    Host host = {};
    if (!(words >> kind >> name >> address >> host.netns) || kind != "host") continue;
    host.address.sin_family = AF_INET;
    host.address.sin_port = htons(kPort);
    inet_pton(AF_INET, address.c_str(), &host.address.sin_addr);
    hosts.push_back(host);
  }
  if (hosts.empty()) Die(path);
  return hosts;
}

int SocketIn(const Host& host) {
  const int fd = open(host.netns.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) < 0) Die(host.netns);
  close(fd);
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) Die("socket");
  const int yes = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  return socket;
}

void Watch(int epoll, int fd, uint32_t events, uint64_t data) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = data;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0) Die("epoll_ctl");
}

void Respond(const std::vector<Host>& hosts) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  constexpr uint64_t kListener = 1ull << 32;
  for (const Host& host : hosts) {
    const int socket = SocketIn(host);
    if (bind(socket, reinterpret_cast<const sockaddr*>(&host.address), sizeof host.address) < 0 ||
        listen(socket, 64) < 0) {
      Die("listen");
    }
    Watch(epoll, socket, EPOLLIN, kListener | socket);
  }
  puts("ready");
  fflush(stdout);
  while (true) {
    epoll_event events[64];
    const int count = epoll_wait(epoll, events, 64, -1);
    for (int i = 0; i < count; ++i) {
      const int fd = static_cast<int>(events[i].data.u64 & 0xffffffff);
      if (events[i].data.u64 & kListener) {
        const int client = accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (client < 0) continue;
        const int yes = 1;
        setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        Watch(epoll, client, EPOLLIN, client);
        continue;
      }
      char bytes[256];
      const ssize_t length = read(fd, bytes, sizeof bytes);
      if (length == 0 || (length < 0 && errno != EAGAIN)) {
        close(fd);
      } else if (length > 0 && write(fd, bytes, length) != length) {
        close(fd);
      }
    }
  }
}

int64_t NowNs() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

struct Measurement {
  int from = 0, to = 0;
  int socket = -1;
  int pings = 0;
  int64_t sent_ns = 0;
  int64_t least_ns = INT64_MAX;
};

class Prober {
 public:
  Prober(const std::vector<Host>& hosts, std::vector<Measurement> all, size_t at_once, int pings)
      : hosts_(hosts), all_(std::move(all)), at_once_(at_once), pings_(pings) {}

  void Run() {
    const int64_t began_ns = NowNs();
    size_t total = 0;
    while (started_ < all_.size() && started_ < at_once_) Start();
    while (done_ < all_.size()) {
      epoll_event events[64];
      const int count = epoll_wait(epoll_, events, 64, 5000);
      if (count == 0) Die("nobody has answered for 5 s");
      for (int i = 0; i < count; ++i) total += Ready(all_[events[i].data.u64]);
    }
    for (const Measurement& one : all_) {
      printf("%d %d %.3f\n", one.from, one.to, static_cast<double>(one.least_ns) / 1e3);
    }
    printf("rate %.0f\n",
           static_cast<double>(total) / (static_cast<double>(NowNs() - began_ns) / 1e9));
  }

 private:
  void Start() {
    Measurement& one = all_[started_];
    one.socket = SocketIn(hosts_[one.from]);
    const auto* address = reinterpret_cast<const sockaddr*>(&hosts_[one.to].address);
    if (connect(one.socket, address, sizeof(sockaddr_in)) < 0 && errno != EINPROGRESS)
      Die("connect");
    Watch(epoll_, one.socket, EPOLLOUT, started_++);
  }

  // The number of pings that have come back: 1 or 0.
  int Ready(Measurement& one) {
    char bytes[kBytes];
    const bool is_connected = one.sent_ns != 0;
    if (is_connected) {
      if (read(one.socket, bytes, kBytes) != kBytes) Die("read");
      one.least_ns = std::min(one.least_ns, NowNs() - one.sent_ns);
      if (++one.pings == pings_) {
        close(one.socket);
        ++done_;
        if (started_ < all_.size()) Start();
        return 1;
      }
    } else {
      epoll_event event = {};
      event.events = EPOLLIN;
      event.data.u64 = &one - all_.data();
      epoll_ctl(epoll_, EPOLL_CTL_MOD, one.socket, &event);
    }
    memset(bytes, 0, kBytes);
    one.sent_ns = NowNs();
    if (write(one.socket, bytes, kBytes) != kBytes) Die("write");
    return is_connected;
  }

  const std::vector<Host>& hosts_;
  std::vector<Measurement> all_;
  const size_t at_once_;
  const int pings_;
  const int epoll_ = epoll_create1(EPOLL_CLOEXEC);
  size_t started_ = 0;
  size_t done_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  rlimit limit = {1 << 16, 1 << 16};
  setrlimit(RLIMIT_NOFILE, &limit);
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "respond" && argc == 3) {
    Respond(ReadHosts(argv[2]));
  } else if (verb == "probe" && argc == 6) {
    const std::vector<Host> hosts = ReadHosts(argv[2]);
    std::ifstream file(argv[3]);
    std::vector<Measurement> all;
    for (Measurement one; file >> one.from >> one.to;) all.push_back(one);
    Prober(hosts, std::move(all), atoi(argv[4]), atoi(argv[5])).Run();
  } else {
    fprintf(stderr, "usage: wan_prober respond HOSTS | probe HOSTS PAIRS AT_ONCE PINGS\n");
    return 64;
  }
  return 0;
}
