// SPDX-License-Identifier: Apache-2.0
// PM against TCP (NODELAY) in the same round and the same waiting mode (both spin), over one
// address of this host: round trip and bandwidth.  Ratios are PM / TCP; the median counts.
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "transport/pm/bench.h"
#include "transport/pm/bench_arguments.h"

namespace sekisho::pm {
namespace {

void Pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  (void)sched_setaffinity(0, sizeof set, &set);
}

[[noreturn]] void Die(const char* what) {
  perror(what);
  exit(1);
}

// TCP.

void Spin(int fd, void* data, std::size_t size, bool write) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t done =
        write ? send(fd, at, size, MSG_DONTWAIT | MSG_NOSIGNAL) : recv(fd, at, size, MSG_DONTWAIT);
    if (done == 0 && !write) exit(0);
    if (done < 0 && errno != EAGAIN) Die("tcp");
    if (done > 0) at += done, size -= static_cast<std::size_t>(done);
  }
}

void TcpServer(int listener) {
  Pin(1);
  std::vector<char> buffer(1 << 20);
  for (;;) {
    const int fd = accept(listener, nullptr, nullptr);
    if (fd < 0) Die("accept");
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
    std::uint32_t size;
    Spin(fd, &size, sizeof size, false);
    if (size > 0) {
      for (bool open = true; open;) {
        for (std::size_t got = 0; open && got < size;) {
          const ssize_t n = recv(fd, buffer.data() + got, size - got, MSG_DONTWAIT);
          if (n > 0) got += static_cast<std::size_t>(n);
          open = n != 0 && (n > 0 || errno == EAGAIN);
        }
        if (open) Spin(fd, buffer.data(), size, true);
      }
    } else {
      ssize_t n;
      while ((n = recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT)) != 0) {
        if (n < 0 && errno != EAGAIN) Die("recv");
      }
      Spin(fd, &size, 1, true);
    }
    close(fd);
  }
}

double TcpRun(const sockaddr_in& address, const Cell& cell, Nanos time) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) Die("connect");
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
  std::vector<char> buffer(cell.size);
  auto size = static_cast<std::uint32_t>(cell.round_trip ? cell.size : 0);
  Spin(fd, &size, sizeof size, true);
  const Nanos start = Device::Now();
  std::uint64_t count = 0;
  while (Device::Now() - start < time) {
    Spin(fd, buffer.data(), cell.size, true);
    if (cell.round_trip) Spin(fd, buffer.data(), cell.size, false);
    ++count;
  }
  if (!cell.round_trip) {
    shutdown(fd, SHUT_WR);
    Spin(fd, &size, 1, false);
  }
  const double seconds = static_cast<double>(Device::Now() - start) / kSecond;
  close(fd);
  return cell.round_trip ? seconds * 1e6 / static_cast<double>(count)
                         : static_cast<double>(count * cell.size) / seconds / 1e6;
}

// PM.

void PmServer(Device& device) {
  Pin(1);
  std::vector<std::uint8_t> copy;
  Message message;
  for (;;) {
    device.Progress();
    bool any = false;
    while (device.endpoint().Receive(message)) {
      any = true;
      if (message.channel == kEcho) {
        copy.assign(message.bytes.first.begin(), message.bytes.first.end());
        copy.insert(copy.end(), message.bytes.second.begin(), message.bytes.second.end());
        while (device.endpoint().Send(0, kEcho, copy, Device::Now())) device.Progress();
      }
      (void)device.endpoint().Release(0, message.channel, Device::Now());
    }
    if (any) device.Flush();
  }
}

double PmRun(Device& device, const Cell& cell, Nanos time) {
  Endpoint& endpoint = device.endpoint();
  const std::vector<std::uint8_t> text(cell.size);
  Message message;
  const Nanos start = Device::Now();
  std::uint64_t count = 0;
  Nanos now = start;
  while (now - start < time) {
    if (cell.round_trip) {
      while (endpoint.Send(1, kEcho, text, Device::Now())) device.Progress();
      device.Flush();
      while (!endpoint.Receive(message)) device.Progress();
      (void)endpoint.Release(1, message.channel, Device::Now());
      ++count;
    } else {
      for (int i = 0; i < 64; ++i) {
        if (endpoint.Send(1, kSink, text, now)) break;
        ++count;
      }
      device.Progress();
    }
    now = Device::Now();
  }
  while (!cell.round_trip && !endpoint.Drained(1)) device.Progress();
  const double seconds = static_cast<double>(Device::Now() - start) / kSecond;
  return cell.round_trip ? seconds * 1e6 / static_cast<double>(count)
                         : static_cast<double>(count * cell.size) / seconds / 1e6;
}

// Both spin, each end a process.
int Spinning(const Settings& settings) {
  const auto client = OpenNode(0, settings);
  const auto server = OpenNode(1, settings);
  (void)client->endpoint().SetAddress(1, server->own_address());
  (void)server->endpoint().SetAddress(0, client->own_address());
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener, 8) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    Die("listen");
  }
  Pin(0);
  // A server spins only while its side is measured: the other one is stopped.
  const pid_t tcp = fork();
  if (tcp == 0) TcpServer(listener), exit(0);
  const pid_t pm = fork();
  if (pm == 0) PmServer(*server), exit(0);
  kill(pm, SIGSTOP);

  printf("%-22s %9s %9s %-5s  PM / TCP min / median / max of %d\n", "", "PM", "TCP", "",
         settings.rounds);
  for (const Cell& cell : kCells) {
    if (strstr(cell.name, settings.only) == nullptr) continue;
    std::vector<double> pm_values, tcp_values;
    for (int round = 0; round < settings.rounds; ++round) {
      kill(pm, SIGCONT);
      pm_values.push_back(PmRun(*client, cell, settings.time));
      kill(pm, SIGSTOP);
      tcp_values.push_back(TcpRun(address, cell, settings.time));
    }
    Report(cell.name, cell.round_trip ? "us" : "MB/s", pm_values, tcp_values);
  }
  const Counters& c = client->endpoint().counters();
  const WireCounters& d = client->counters();
  printf(
      "datagrams out %lu (%lu in larger buffers) in %lu; retransmitted %lu (by gap %lu, time-out "
      "%lu, "
      "probe %lu), spurious %lu, blocked %lu; path MTU %u\n",
      c.datagrams_out, d.sent_together, c.datagrams_in, c.retransmitted, c.lost_by_gap,
      c.lost_by_timeout, c.probes, c.spurious, d.blocked, client->endpoint().session(1).mtu);
  for (const pid_t child : {tcp, pm}) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  return 0;
}

int Main(int argc, char** argv) {
  BenchArguments arguments;
  int code;
  if (!ReadBenchArguments(argc, argv, arguments, code)) return code;
  switch (arguments.bench) {
    case BenchArguments::Bench::kGoals:
      return Goals(arguments.settings);
    case BenchArguments::Bench::kNear:
      NearBench(arguments.settings);
      return 0;
    case BenchArguments::Bench::kOneThread:
      OneThread(arguments.settings);
      return 0;
    case BenchArguments::Bench::kSpinning:
      break;
  }
  return Spinning(arguments.settings);
}

}  // namespace
}  // namespace sekisho::pm

int main(int argc, char** argv) { return sekisho::pm::Main(argc, argv); }
