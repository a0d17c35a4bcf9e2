// SPDX-License-Identifier: Apache-2.0
// The link over a mesh of TCP connections: NODELAY, cubic, the ports of the job file.
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <vector>

#include "tests/bench/pm/link.h"
#include "transport/pm/job_file.h"

namespace sekisho::pm_bench {
namespace {

void Prepare(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
}

sockaddr_in AddressOf(const pm::JobFile& job, int rank) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(job.addresses[rank].port);
  memcpy(&address.sin_addr, job.addresses[rank].ip.data() + 12, 4);
  return address;
}

class TcpLink final : public Link {
 public:
  explicit TcpLink(const LinkSettings& settings) : waiting_(settings.waiting) {
    pm::JobFile job;
    int line;
    if (pm::ReadJobFile(settings.job.c_str(), job, line)) Die("cannot read " + settings.job);
    rank = settings.rank;
    size = job.nodes;
    fds_.assign(static_cast<std::size_t>(size), {-1, POLLIN, 0});
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const sockaddr_in own = AddressOf(job, rank);
    if (bind(listener, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
        listen(listener, 64) != 0) {
      Die(std::string("tcp listen: ") + strerror(errno));
    }
    for (int to = 0; to < rank; ++to) Connect(AddressOf(job, to), to);
    for (int i = rank + 1; i < size; ++i) {
      const int fd = accept(listener, nullptr, nullptr);
      int from;
      if (fd < 0 || recv(fd, &from, sizeof from, MSG_WAITALL) != sizeof from) Die("tcp accept");
      fds_[static_cast<std::size_t>(from)].fd = fd;
      Prepare(fd);
    }
    close(listener);
  }
  ~TcpLink() override {
    for (const pollfd& peer : fds_) {
      if (peer.fd >= 0) close(peer.fd);
    }
  }

  std::size_t Put(int to, Bytes head, Bytes body) override {
    std::size_t done = 0;
    const std::size_t total = head.size() + body.size();
    const int fd = fds_[static_cast<std::size_t>(to)].fd;
    while (done < total) {
      iovec parts[2] = {{const_cast<unsigned char*>(head.data()), head.size()},
                        {const_cast<unsigned char*>(body.data()), body.size()}};
      int first = 0;
      if (done < head.size()) {
        parts[0] = {const_cast<unsigned char*>(head.data()) + done, head.size() - done};
      } else {
        first = 1;
        parts[1] = {const_cast<unsigned char*>(body.data()) + (done - head.size()), total - done};
      }
      msghdr message{};
      message.msg_iov = parts + first;
      message.msg_iovlen = static_cast<std::size_t>(2 - first);
      const ssize_t sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno == EAGAIN) {
        blocked_ = to;
        return done;
      }
      if (sent < 0) Die(std::string("tcp send: ") + strerror(errno));
      done += static_cast<std::size_t>(sent);
    }
    return done;
  }

  bool Poll(const Sink& sink) override {
    bool any = false;
    // With many connections asking the kernel which are ready is cheaper than trying each.
    const bool ask = size > 3 && poll(fds_.data(), fds_.size(), 0) >= 0;
    for (int from = 0; from < size; ++from) {
      const pollfd& peer = fds_[static_cast<std::size_t>(from)];
      if (peer.fd < 0 || (ask && peer.revents == 0)) continue;
      for (;;) {
        const ssize_t got = recv(peer.fd, buffer_, sizeof buffer_, MSG_DONTWAIT);
        if (got <= 0) break;
        sink(from, {buffer_, static_cast<std::size_t>(got)});
        any = true;
        if (static_cast<std::size_t>(got) < sizeof buffer_) break;
      }
    }
    return any;
  }

  void Wait(bool blocked) override {
    if (waiting_ == Waiting::kSpin) return;
    pollfd& full = fds_[static_cast<std::size_t>(blocked && blocked_ >= 0 ? blocked_ : rank)];
    if (blocked) full.events = POLLIN | POLLOUT;
    (void)poll(fds_.data(), fds_.size(), blocked && blocked_ < 0 ? 0 : 1000);
    full.events = POLLIN;
    blocked_ = -1;
  }

  void Finish() override {}
  void Checkpoint(const std::function<void()>&) override { Die("TCP has no checkpoint"); }
  void Restart() override {}

 private:
  void Connect(const sockaddr_in& address, int to) {
    for (int tries = 0; tries < 2000; ++tries, usleep(5000)) {
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
        (void)!write(fd, &rank, sizeof rank);
        fds_[static_cast<std::size_t>(to)].fd = fd;
        Prepare(fd);
        return;
      }
      close(fd);
    }
    Die("tcp connect to rank " + std::to_string(to));
  }

  Waiting waiting_;
  std::vector<pollfd> fds_;
  int blocked_ = -1;
  alignas(64) unsigned char buffer_[256 * 1024];
};

}  // namespace

std::unique_ptr<Link> OpenTcp(const LinkSettings& settings) {
  return std::make_unique<TcpLink>(settings);
}

}  // namespace sekisho::pm_bench
