// SPDX-License-Identifier: Apache-2.0
// See emulator.h.
#include "deploy/wan/emulator.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sekisho::wan {
namespace {

constexpr uint64_t kSignals = ~0ull;
constexpr uint64_t kListener = ~0ull - 1;
// In one go, so that neither side keeps the other waiting for long.
constexpr int kReadsInARow = 16;
constexpr int kDeliveriesInARow = 16;

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000ll + now.tv_nsec;
}

void Watch(int epoll, int fd, uint64_t what) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = what;
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

Emulator::Emulator(std::unique_ptr<Network> network, std::vector<int> devices, bool is_busy)
    : network_(std::move(network)),
      devices_(std::move(devices)),
      is_busy_(is_busy),
      own_time_(devices_.size()),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  for (size_t i = 0; i < devices_.size(); ++i) Watch(epoll_, devices_[i], i);
}

Emulator::~Emulator() {
  for (int device : devices_) close(device);
  close(epoll_);
  if (listener_ >= 0) {
    close(listener_);
    unlink(listener_path_.c_str());
  }
}

bool Emulator::Listen(const std::string& path, std::string& error) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  unlink(path.c_str());
  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener_ < 0 ||
      bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0 ||
      listen(listener_, 16) < 0) {
    error = path + ": " + strerror(errno);
    return false;
  }
  listener_path_ = path;
  Watch(epoll_, listener_, kListener);
  return true;
}

void Emulator::Run(int signals) {
  Watch(epoll_, signals, kSignals);
  while (true) {
    epoll_event events[64];
    if (is_busy_) own_time_.Look(NowNs());
    const int count = Wait(events, 64);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == kSignals) return;
      if (events[i].data.u64 == kListener) {
        Answer();
      } else {
        Read(static_cast<int>(events[i].data.u64));
      }
    }
    Deliver();
  }
}

int Emulator::Wait(epoll_event* events, int max) {
  if (is_busy_) return epoll_wait(epoll_, events, max, 0);
  const std::optional<int64_t> next_ns = network_->NextNs();
  if (!next_ns) return epoll_wait(epoll_, events, max, -1);
  const int64_t left_ns = std::max<int64_t>(0, *next_ns - NowNs());
  const timespec left = {left_ns / 1'000'000'000, left_ns % 1'000'000'000};
  return epoll_pwait2(epoll_, events, max, &left, nullptr);
}

void Emulator::Read(int host) {
  for (int i = 0; i < kReadsInARow; ++i) {
    const std::span<uint8_t> spare = network_->Spare();
    const ssize_t length = read(devices_[host], spare.data(), spare.size());
    if (length < 0) {
      // A device that somebody has deleted would be readable for ever.
      if (errno != EAGAIN && errno != EINTR)
        epoll_ctl(epoll_, EPOLL_CTL_DEL, devices_[host], nullptr);
      return;
    }
    const int64_t now_ns = NowNs();
    network_->Enter(host, length, is_busy_ ? own_time_.ArrivalNs(host, i > 0, now_ns) : now_ns);
  }
}

void Emulator::Deliver() {
  for (int i = 0; i < kDeliveriesInARow; ++i) {
    const int64_t now_ns = NowNs();
    const std::optional<Network::Delivery> delivery = network_->Take(now_ns + own_time_.lead_ns());
    if (!delivery) return;
    const std::span<const uint8_t> bytes = delivery->bytes;
    if (write(devices_[delivery->host], bytes.data(), bytes.size()) < 0)
      ++deliveries_.failed_writes;
    if (is_busy_) own_time_.Wrote(delivery->host, delivery->due_ns, now_ns, NowNs());
    const int64_t late_ns = now_ns - delivery->due_ns;
    deliveries_.late_100us += late_ns > 100'000;
    deliveries_.late_1ms += late_ns > 1'000'000;
    deliveries_.late_10ms += late_ns > 10'000'000;
  }
}

void Emulator::Answer() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (client < 0) return;
  const std::string json = CountersJson(*network_, deliveries_);
  const int room = static_cast<int>(json.size()) * 2;  // all of it at once: we wait for nobody
  setsockopt(client, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
  if (send(client, json.data(), json.size(), MSG_NOSIGNAL) < 0) {
    // It has gone.
  }
  close(client);
}

}  // namespace sekisho::wan
