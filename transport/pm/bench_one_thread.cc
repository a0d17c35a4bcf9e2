// SPDX-License-Identifier: Apache-2.0
// PM against TCP with both ends in one thread: processor time of a round trip and of a GiB.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "transport/pm/bench.h"
#include "transport/pm/bench_pair.h"

namespace sekisho::pm {

std::unique_ptr<Device> OpenNode(NodeId node, const Settings& settings) {
  Config config = BenchConfig(node);
  config.channels = 2;
  config.payload_tag = settings.payload_tag;
  config.datagram_max = settings.datagram_max;
  config.send_ring = config.receive_ring = settings.ring;
  Address own;
  (void)ParseAddress("127.0.0.1:0", own);
  std::unique_ptr<Device> device;
  if (const auto error =
          Device::Open(config, own, {.offload = settings.offload}, nullptr, device)) {
    fprintf(stderr, "cannot open: %s\n", error.message().c_str());
    exit(1);
  }
  return device;
}

void Report(const char* name, const char* unit, std::vector<double> pm, std::vector<double> tcp) {
  std::vector<double> ratio;
  for (std::size_t i = 0; i < pm.size(); ++i) ratio.push_back(pm[i] / tcp[i]);
  std::sort(ratio.begin(), ratio.end());
  std::sort(pm.begin(), pm.end());
  std::sort(tcp.begin(), tcp.end());
  const std::size_t middle = pm.size() / 2;
  printf("%-22s %9.1f %9.1f %-5s  %5.2f / %5.2f / %5.2f\n", name, pm[middle], tcp[middle], unit,
         ratio.front(), ratio[middle], ratio.back());
}

namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

double ProcessorSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Moves `size` bytes from one end to the other.
void Carry(int from, int to, std::vector<char>& buffer, std::size_t size) {
  std::size_t sent = 0, got = 0;
  while (got < size) {
    if (sent < size) {
      const ssize_t n = send(from, buffer.data(), size - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n > 0) sent += static_cast<std::size_t>(n);
    }
    const ssize_t n = recv(to, buffer.data(), size - got, MSG_DONTWAIT);
    if (n > 0) got += static_cast<std::size_t>(n);
  }
}

double TcpCost(const Cell& cell, Nanos time) {
  const TcpPair pair = ConnectTcp();
  if (pair.b < 0) {
    perror("tcp");
    exit(1);
  }
  std::vector<char> buffer(std::max<std::size_t>(cell.size, 256 * 1024));
  std::uint64_t count = 0, bytes = 0;
  const double start = ProcessorSeconds();
  for (const Nanos end = Device::Now() + time; Device::Now() < end;) {
    if (cell.round_trip) {
      Carry(pair.a, pair.b, buffer, cell.size);
      Carry(pair.b, pair.a, buffer, cell.size);
      ++count;
      continue;
    }
    for (int i = 0; i < 64; ++i) {
      if (send(pair.a, buffer.data(), cell.size, MSG_DONTWAIT | MSG_NOSIGNAL) <= 0) break;
    }
    ssize_t n;
    while ((n = recv(pair.b, buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0) {
      bytes += static_cast<std::uint64_t>(n);
    }
  }
  const double seconds = ProcessorSeconds() - start;
  close(pair.a);
  close(pair.b);
  return cell.round_trip ? seconds * 1e6 / static_cast<double>(count)
                         : seconds * kGiB / static_cast<double>(bytes);
}

// One message from one end to the other.
void Carry(Device& from, NodeId to_node, Device& to, Bytes text) {
  while (from.endpoint().Send(to_node, kEcho, text, Device::Now())) from.Progress();
  from.Flush();
  Message message;
  while (!to.endpoint().Receive(message)) {
    to.Progress();
    if (to.endpoint().Receive(message)) break;
    from.Progress();
  }
  (void)to.endpoint().Release(message.source, message.channel, Device::Now());
}

double PmCost(Device& a, Device& b, const Cell& cell, Nanos time) {
  const std::vector<std::uint8_t> text(cell.size);
  std::uint64_t count = 0, bytes = 0;
  Message message;
  const double start = ProcessorSeconds();
  for (const Nanos end = Device::Now() + time; Device::Now() < end;) {
    if (cell.round_trip) {
      Carry(a, 1, b, text);
      Carry(b, 0, a, text);
      ++count;
      continue;
    }
    const Nanos now = Device::Now();
    for (int i = 0; i < 64; ++i) {
      if (a.endpoint().Send(1, kSink, text, now)) break;
    }
    a.Progress();
    b.Progress();
    while (b.endpoint().Receive(message)) {
      bytes += message.bytes.size();
      (void)b.endpoint().Release(0, message.channel, now);
    }
  }
  const double seconds = ProcessorSeconds() - start;
  while (!a.endpoint().Drained(1)) {
    a.Progress();
    b.Progress();
    while (b.endpoint().Receive(message))
      (void)b.endpoint().Release(0, message.channel, Device::Now());
  }
  return cell.round_trip ? seconds * 1e6 / static_cast<double>(count)
                         : seconds * kGiB / static_cast<double>(bytes);
}

}  // namespace

void OneThread(const Settings& settings) {
  const auto a = OpenNode(0, settings), b = OpenNode(1, settings);
  (void)a->endpoint().SetAddress(1, b->own_address());
  (void)b->endpoint().SetAddress(0, a->own_address());
  printf("processor time, both ends in one thread\n");
  printf("%-22s %9s %9s %-5s  PM / TCP min / median / max of %d\n", "", "PM", "TCP", "",
         settings.rounds);
  for (const Cell& cell : kCells) {
    if (strstr(cell.name, settings.only) == nullptr) continue;
    std::vector<double> pm, tcp;
    for (int round = 0; round < settings.rounds; ++round) {
      pm.push_back(PmCost(*a, *b, cell, settings.time));
      tcp.push_back(TcpCost(cell, settings.time));
    }
    Report(cell.name, cell.round_trip ? "us" : "s/GiB", pm, tcp);
  }
  const Counters& c = a->endpoint().counters();
  printf(
      "datagrams out %lu (%lu in larger buffers), retransmitted %lu, spurious %lu, blocked %lu\n",
      c.datagrams_out, a->counters().sent_together, c.retransmitted, c.spurious,
      a->counters().blocked);
}

}  // namespace sekisho::pm
