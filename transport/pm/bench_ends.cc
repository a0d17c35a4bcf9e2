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

void End::NoteDelay(Nanos stamp) {
  const std::uint32_t at = board_->delay_count.fetch_add(1);
  if (at < Board::kDelays) {
    board_->delays[at] = static_cast<float>(Wire::Now() - stamp) / kMicrosecond;
  }
}

// Who is late for one message sends the next ones when they were due: their wait counts.
void End::SendPaced(Nanos end) {
  for (Nanos due = Wire::Now(); due < end; due += traffic_.period) {
    while (Wire::Now() < due) Progress();
    SendStamped(due);
  }
}

void End::TakeDelays(Measured& measured) {
  const Nanos limit = Wire::Now() + kSecond;
  std::uint32_t count;
  do {  // what was sent has arrived when nothing more comes
    count = board_->delay_count.load();
    for (const Nanos later = Wire::Now() + 20 * kMillisecond; Wire::Now() < later;) Progress();
  } while (board_->delay_count.load() != count && Wire::Now() < limit);
  std::vector<float> delays(board_->delays.begin(),
                            board_->delays.begin() + std::min<std::size_t>(count, Board::kDelays));
  if (delays.empty()) return;
  std::sort(delays.begin(), delays.end());
  const auto at = [&](double part) {
    return delays[static_cast<std::size_t>(part * static_cast<double>(delays.size() - 1))];
  };
  measured.p99 = at(0.99);
  measured.p999 = at(0.999);
  measured.most = delays.back();
}

Measured End::Run(Nanos time) {
  server_->Signal(SIGCONT);
  const std::uint64_t arrived = board_->arrived.load();
  const double server = server_->processor_seconds();
  const double own = ProcessorSeconds(CLOCK_PROCESS_CPUTIME_ID);
  const Nanos begin = Wire::Now();
  std::uint64_t count = 0;
  board_->delay_count.store(0);
  if (traffic_.period > 0) SendPaced(begin + time);
  // The clock is not asked for every message: it takes as long as to send one of PM's.
  const std::uint64_t look = traffic_.round_trip ? 1 : 16;
  while (traffic_.period == 0 && (count % look != 0 || Wire::Now() - begin < time)) {
    traffic_.round_trip ? RoundTrip() : SendSome();
    ++count;
  }
  const double seconds = static_cast<double>(Wire::Now() - begin) / kSecond;
  const auto bytes = static_cast<double>(board_->arrived.load() - arrived);
  const double spent =
      server_->processor_seconds() - server + ProcessorSeconds(CLOCK_PROCESS_CPUTIME_ID) - own;
  Drain();
  Measured measured;
  if (traffic_.period > 0) TakeDelays(measured);
  server_->Signal(SIGSTOP);
  if (traffic_.period > 0) return measured;
  if (traffic_.round_trip) return {seconds * 1e6 / static_cast<double>(count), 0};
  return {bytes / seconds, bytes > 0 ? spent * (1 << 30) / bytes : 0};
}

namespace {

Nanos StampOf(const void* message) {
  Nanos stamp;
  memcpy(&stamp, message, sizeof stamp);
  return stamp;
}

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
        if (traffic_.period > 0) NoteDelay(StampOf(message.bytes.first.data()));
        own.Release(message);
        if (traffic_.round_trip) Put(own, 0);
      }
      (void)own.Wait(kNever);
    }
  }

  void Put(Context& context, NodeId to) {
    while (const auto error = context.Send(to, 0, text_)) {
      if (error != Error::kWouldBlock) Die("PM: the peer is gone");
      context.Progress();
      if (context.Room(to, 0, text_.size())) WaitForPeer(context);
    }
  }

  void WaitForPeer(Context& context) {
    if (traffic_.waiting == Waiting::kSpin) return context.Progress();
    context.Sleep(Wire::Now() + kMillisecond);
  }

  void SendStamped(Nanos stamp) override {
    memcpy(text_.data(), &stamp, sizeof stamp);
    Put(*contexts_[0], 1);
  }

  void Progress() override { contexts_[0]->Progress(); }

  void RoundTrip() override {
    Put(*contexts_[0], 1);
    Message message;
    while (!contexts_[0]->Receive(message)) (void)contexts_[0]->Wait(Wire::Now() + kSecond);
    contexts_[0]->Release(message);
  }

  void SendSome() override {
    for (int i = 0; i < 16; ++i) Put(*contexts_[0], 1);
  }

  void Explain() override {
    const WireCounters& wire = contexts_[0]->wire_counters();
    printf("#   sent by %lu calls, asked for more by %lu\n", wire.send_calls, wire.receive_calls);
    for (const auto& context : contexts_) {
      const Counters& c = context->counters();
      printf(
          "#   node %u: %lu datagrams out, %lu of them only acks; sent again %lu: %lu by a gap, "
          "%lu "
          "probes, %lu time-outs; in vain %lu\n",
          context->config().node, c.datagrams_out, c.acks_only, c.retransmitted, c.lost_by_gap,
          c.probes, c.timeouts, c.spurious);
    }
  }

  void Drain() override {
    const Nanos limit = Wire::Now() + 10 * kSecond;
    while (!contexts_[0]->Drained(1) && Wire::Now() < limit) WaitForPeer(*contexts_[0]);
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
      if (traffic_.period > 0) {
        Get(theirs_);
        NoteDelay(StampOf(buffer_.data()));
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

std::unique_ptr<End> OpenPmEnd(const Traffic& traffic) { return std::make_unique<PmEnd>(traffic); }
std::unique_ptr<End> OpenTcpEnd(const Traffic& traffic) {
  return std::make_unique<TcpEnd>(traffic);
}

}  // namespace sekisho::pm
