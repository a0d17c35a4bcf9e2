// SPDX-License-Identifier: Apache-2.0
// The two ends of a measurement over TCP.
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "transport/pm/bench_ends.h"
#include "transport/pm/bench_pair.h"

namespace sekisho::pm {
namespace {

constexpr const char* kBbr = "bbr";

class TcpEnd final : public End {
 public:
  TcpEnd(const Traffic& traffic, const char* congestion) : End(traffic), buffer_(1 << 20) {
    const TcpPair pair = ConnectTcp(congestion);
    if (pair.b < 0) Die("tcp");
    ours_ = pair.a;
    theirs_ = pair.b;
    Fork();
  }
  ~TcpEnd() override {
    close(ours_);
    close(theirs_);
  }

 private:
  // Blocks, or spins, and sleeps nowhere.  TCP has nothing between.
  int flags() const { return traffic_.waiting == Waiting::kSpin ? MSG_DONTWAIT : 0; }

  void Serve() override {
    for (;;) {
      if (traffic_.round_trip) {
        Get(theirs_);
        Put(theirs_);
        continue;
      }
      if (traffic_.period > 0) {
        Get(theirs_);
        NoteDelay(buffer_.data());
        continue;
      }
      const ssize_t got = recv(theirs_, buffer_.data(), buffer_.size(), flags());
      if (got > 0) board_->arrived += static_cast<std::uint64_t>(got);
      if (got == 0 || (got < 0 && errno != EAGAIN)) Die("tcp recv");
    }
  }

  void Get(int fd) {
    for (std::size_t done = 0; done < traffic_.size;) {
      const ssize_t got = recv(fd, buffer_.data() + done, traffic_.size - done, flags());
      if (got == 0 || (got < 0 && errno != EAGAIN)) Die("tcp recv");
      if (got > 0) done += static_cast<std::size_t>(got);
    }
  }

  void Put(int fd) {
    for (std::size_t done = 0; done < traffic_.size;) {
      const ssize_t sent =
          send(fd, buffer_.data() + done, traffic_.size - done, flags() | MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) Die("tcp send");
      if (sent > 0) done += static_cast<std::size_t>(sent);
    }
  }

  void RoundTrip() override {
    Put(ours_);
    Get(ours_);
  }
  void SendStamped(Nanos stamp) override {
    memcpy(buffer_.data(), &stamp, sizeof stamp);
    Put(ours_);
  }
  void SendSome() override {
    for (int i = 0; i < 16; ++i) Put(ours_);
  }

  std::vector<char> buffer_;
  int ours_ = -1, theirs_ = -1;
};

}  // namespace

std::unique_ptr<Measurement> OpenTcpEnd(const Traffic& traffic) {
  return std::make_unique<TcpEnd>(traffic, kCubic);
}

bool HasBbr() {
  const int fd = ListenTcp(1, kBbr);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

std::unique_ptr<Measurement> OpenBbrEnd(const Traffic& traffic) {
  return std::make_unique<TcpEnd>(traffic, kBbr);
}

}  // namespace sekisho::pm
