// SPDX-License-Identifier: Apache-2.0
// The two ends of a measurement, over PM and over TCP.
#include "transport/pm/bench_ends.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <vector>

#include "transport/pm/bench_pair.h"

namespace sekisho::pm {
namespace {

[[noreturn]] void Die(const char* what) {
  fprintf(stderr, "sekisho-pm-bench: %s: %s\n", what, errno != 0 ? strerror(errno) : "unexpected");
  _exit(1);
}

void Pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  (void)sched_setaffinity(0, sizeof set, &set);  // with one core there is nothing to choose
}

double ProcessorSeconds(clockid_t clock) {
  timespec now;
  if (clock_gettime(clock, &now) != 0) Die("clock_gettime");
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

class End::Server {
 public:
  explicit Server(pid_t pid) : pid_(pid) {
    if (clock_getcpuclockid(pid, &clock_) != 0) Die("clock_getcpuclockid");
  }
  ~Server() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  void Signal(int signal) { kill(pid_, signal); }
  double processor_seconds() const { return ProcessorSeconds(clock_); }

 private:
  pid_t pid_;
  clockid_t clock_;
};

End::End(const Traffic& traffic) : traffic_(traffic) {
  void* board =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (board == MAP_FAILED) Die("mmap");
  board_ = new (board) Board;
}

End::~End() { munmap(board_, sizeof(Board)); }

void End::Fork() {
  const pid_t pid = fork();
  if (pid < 0) Die("fork");
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Pin(traffic_.server_core);
    Serve();
    _exit(0);
  }
  Pin(0);
  server_ = std::make_unique<Server>(pid);
}

Measured End::Run(Nanos time) {
  server_->Signal(SIGCONT);
  const std::uint64_t arrived = board_->arrived.load();
  const double server = server_->processor_seconds();
  const double own = ProcessorSeconds(CLOCK_PROCESS_CPUTIME_ID);
  const Nanos begin = Wire::Now();
  std::uint64_t count = 0;
  while (Wire::Now() - begin < time) {
    traffic_.round_trip ? RoundTrip() : SendSome();
    ++count;
  }
  const double seconds = static_cast<double>(Wire::Now() - begin) / kSecond;
  const auto bytes = static_cast<double>(board_->arrived.load() - arrived);
  const double spent =
      server_->processor_seconds() - server + ProcessorSeconds(CLOCK_PROCESS_CPUTIME_ID) - own;
  Drain();
  server_->Signal(SIGSTOP);
  if (traffic_.round_trip) return {seconds * 1e6 / static_cast<double>(count), 0};
  return {bytes / seconds, bytes > 0 ? spent * (1 << 30) / bytes : 0};
}

namespace {

class PmEnd final : public End {
 public:
  explicit PmEnd(const Traffic& traffic) : End(traffic), text_(traffic.size) {
    contexts_[0] = OpenNode(0);
    contexts_[1] = OpenNode(1);
    for (const NodeId node : {0, 1}) {
      const auto other = static_cast<NodeId>(1 - node);
      (void)contexts_[node]->SetAddress(other, contexts_[other]->own_address());
      contexts_[node]->set_waiting(traffic.waiting);
    }
    Fork();
  }

 private:
  std::unique_ptr<Context> OpenNode(NodeId node) {
    Config config = BenchConfig(node);
    config.channels = 1;
    config.payload_tag = traffic_.payload_tag;
    config.datagram_max = 1472;
    Address own;
    std::unique_ptr<Context> context;
    if (ParseAddress("127.0.0.1:0", own) || Context::Open(config, own, nullptr, -1, context)) {
      Die("cannot open a context");
    }
    return context;
  }

  void Serve() override {
    Context& own = *contexts_[1];
    Message message;
    for (;;) {
      while (own.Receive(message)) {
        board_->arrived += message.bytes.size();
        own.Release(message);
        if (traffic_.round_trip) Put(own, 0);
      }
      (void)own.Wait(kNever);
    }
  }

  void Put(Context& context, NodeId to) {
    while (const auto error = context.Send(to, 0, text_)) {
      if (error != Error::kWouldBlock) Die("PM: the peer is gone");
      WaitForRoom(context);
    }
  }

  // The waiting of a context is for messages.
  void WaitForRoom(Context& context) {
    context.Progress();
    if (traffic_.waiting == Waiting::kSpin) return;
    const Nanos left = std::clamp<Nanos>(context.NextDeadline() - Wire::Now(), 0, kMillisecond);
    const timespec timeout = {0, left};
    pollfd socket = {context.fd(), POLLIN, 0};
    (void)ppoll(&socket, 1, &timeout, nullptr);
    context.Progress();
  }

  void RoundTrip() override {
    Put(*contexts_[0], 1);
    Message message;
    while (!contexts_[0]->Receive(message)) (void)contexts_[0]->Wait(Wire::Now() + kSecond);
    contexts_[0]->Release(message);
  }

  void SendSome() override {
    for (int i = 0; i < 16; ++i) Put(*contexts_[0], 1);
  }

  void Drain() override {
    const Nanos limit = Wire::Now() + 10 * kSecond;
    while (!contexts_[0]->Drained(1) && Wire::Now() < limit) WaitForRoom(*contexts_[0]);
  }

  std::vector<std::uint8_t> text_;
  std::unique_ptr<Context> contexts_[2];
};

class TcpEnd final : public End {
 public:
  explicit TcpEnd(const Traffic& traffic) : End(traffic), buffer_(1 << 20) {
    const TcpPair pair = ConnectTcp();
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
  void SendSome() override {
    for (int i = 0; i < 16; ++i) Put(ours_);
  }

  std::vector<char> buffer_;
  int ours_ = -1, theirs_ = -1;
};

}  // namespace

std::unique_ptr<End> OpenPmEnd(const Traffic& traffic) { return std::make_unique<PmEnd>(traffic); }
std::unique_ptr<End> OpenTcpEnd(const Traffic& traffic) {
  return std::make_unique<TcpEnd>(traffic);
}

}  // namespace sekisho::pm
