// SPDX-License-Identifier: Apache-2.0
// One process with a connection to each of its many peers, and epoll at both sides.
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/pm/bench_pair.h"
#include "transport/pm/bench_peers.h"

namespace sekisho::pm {
namespace {

class TcpPeers final : public PeersEnd {
 public:
  explicit TcpPeers(const Traffic& traffic)
      : PeersEnd(traffic),
        listener_(ListenTcp(traffic.peers)),
        fds_(static_cast<std::size_t>(traffic.peers), -1) {
    if (listener_ < 0) Die("tcp");
    Fork();
    for (int peer = 0; peer < traffic.peers && !traffic.first_contact; ++peer) Connect(peer);
  }
  ~TcpPeers() override {
    for (const int fd : fds_) {
      if (fd >= 0) close(fd);
    }
    close(listener_);
  }

 private:
  void Connect(int peer) {
    int& fd = fds_[static_cast<std::size_t>(peer)];
    fd = ConnectTcpTo(listener_);
    if (fd < 0) Die("tcp");
    readable_.Add(fd, static_cast<std::uint32_t>(peer));
  }

  void Serve() override {
    Readable readable;
    readable.Add(listener_, static_cast<std::uint32_t>(listener_));
    for (;;) {
      for (const epoll_event& event : readable.Wait(spins() ? 0 : kNever)) {
        const int fd = static_cast<int>(event.data.u32);
        if (fd != listener_) {
          Answer(fd);
        } else if (const int connection = accept(listener_, nullptr, nullptr); connection >= 0) {
          // One that waits for room would hold up the others.
          const int room = static_cast<int>(2 * traffic_.answer);
          if (is_incast()) (void)setsockopt(connection, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
          readable.Add(connection, static_cast<std::uint32_t>(connection));
        }
      }
    }
  }

  void Answer(int fd) {
    std::array<char, 1 << 16> buffer;
    const ssize_t got = recv(fd, buffer.data(), buffer.size(), 0);
    if (got <= 0) Die("tcp recv");
    board_->arrived += static_cast<std::uint64_t>(got);
    if (notes_delays()) NoteDelay(buffer.data());
    const std::size_t size = is_incast() ? traffic_.answer : static_cast<std::size_t>(got);
    if (answers() && send(fd, buffer.data(), size, MSG_NOSIGNAL) != static_cast<ssize_t>(size)) {
      Die("tcp send");
    }
  }

  void SendTo(int peer) override {
    int& fd = fds_[static_cast<std::size_t>(peer)];
    if (fd < 0) Connect(peer);
    const auto size = static_cast<ssize_t>(text_.size());
    if (send(fd, text_.data(), text_.size(), MSG_NOSIGNAL) != size) Die("tcp send");
  }

  void Await(int count) override {
    std::array<char, 1 << 16> buffer;
    // Its time-outs double.
    const Nanos limit = Wire::Now() + (is_incast() ? 120 : 10) * kSecond;
    for (std::size_t left = static_cast<std::size_t>(count) * answer_size(); left > 0;) {
      if (Wire::Now() > limit) Die("TCP: no answer");
      for (const epoll_event& event : readable_.Wait(spins() ? 0 : limit)) {
        const ssize_t got = recv(fds_[event.data.u32], buffer.data(), buffer.size(), 0);
        if (got <= 0) Die("tcp recv");
        left -= static_cast<std::size_t>(got);
      }
    }
  }

  const int listener_;
  std::vector<int> fds_;
  Readable readable_;
};

}  // namespace

std::unique_ptr<Measurement> OpenTcpPeers(const Traffic& traffic) {
  return std::make_unique<TcpPeers>(traffic);
}

}  // namespace sekisho::pm
