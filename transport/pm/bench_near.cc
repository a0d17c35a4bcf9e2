// SPDX-License-Identifier: Apache-2.0
// Two programs of one host under a sekisho-pmd of their own: datagrams through memory, and all by
// UDP, in turns.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "transport/pm/bench.h"
#include "transport/pm/bench_context.h"
#include "transport/pm/bench_ends.h"
#include "transport/pm/bench_pair.h"

namespace sekisho::pm {
namespace {

// In a folder of its own, with the key of a job.
class BenchDaemon {
 public:
  BenchDaemon() {
    char name[] = "/tmp/pm_bench_XXXXXX";
    if (mkdtemp(name) == nullptr) Die("cannot make a folder");
    folder_ = name;
    std::ofstream(key()) << std::string(32, 'k');
    (void)chmod(key().c_str(), 0600);
    char own[4096];
    const ssize_t size = readlink("/proc/self/exe", own, sizeof own);
    std::string program(own, size > 0 ? static_cast<std::size_t>(size) : 0);
    program.resize(program.rfind('/') + 1);
    program += "sekisho-pmd";
    pid_ = fork();
    if (pid_ == 0) {
      setpgid(0, 0);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (freopen("/dev/null", "w", stderr) == nullptr) _exit(1);
      execl(program.c_str(), program.c_str(), "--socket", socket().c_str(), nullptr);
      _exit(127);
    }
    for (const Nanos limit = Wire::Now() + 20 * kSecond;;) {
      const int fd = ConnectDaemon(socket().c_str());
      if (fd >= 0) {
        close(fd);
        return;
      }
      if (Wire::Now() > limit) Die("sekisho-pmd does not listen");
      usleep(1000);
    }
  }
  ~BenchDaemon() {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    for (const std::string& name : {key(), socket(), socket() + ".lock"}) unlink(name.c_str());
    rmdir(folder_.c_str());
  }
  BenchDaemon(const BenchDaemon&) = delete;
  BenchDaemon& operator=(const BenchDaemon&) = delete;

  std::string key() const { return folder_ + "/key"; }
  std::string socket() const { return folder_ + "/pmd"; }

 private:
  std::string folder_;
  pid_t pid_ = -1;
};

class NearEnd final : public End {
 public:
  NearEnd(const Traffic& traffic, const BenchDaemon& daemon, std::uint16_t number, bool near)
      : End(traffic), daemon_(daemon), number_(number), near_(near), text_(traffic.size) {
    for (Address& address : addresses_) {
      Wire wire;  // a port that was free a moment ago
      if (ParseAddress("127.0.0.1:0", address) || wire.Open(address, {})) Die("no port is free");
      address = wire.own_address();
    }
    Fork();
    context_ = OpenNode(0);
  }

  void Explain() override {
    const Counters& c = context_->counters();
    printf("#   %s: %lu datagrams out, %lu through memory; sent again %lu, in vain %lu\n",
           near_ ? "memory" : "UDP", c.datagrams_out, context_->near_sent(), c.retransmitted,
           c.spurious);
  }

 private:
  std::unique_ptr<Context> OpenNode(NodeId node) {
    Config config = BenchConfig(node);
    config.channels = 1;
    config.context = number_;
    std::unique_ptr<Context> context;
    const int key = open(daemon_.key().c_str(), O_RDONLY | O_CLOEXEC);
    if (Context::Open(config, addresses_[node], daemon_.socket().c_str(), key, context)) {
      Die("cannot open a context");
    }
    close(key);
    const auto other = static_cast<NodeId>(1 - node);
    (void)context->SetAddress(other, addresses_[other]);
    context->set_waiting(traffic_.waiting);
    context->set_near(near_);
    return context;
  }

  void Serve() override {
    const auto own = OpenNode(1);
    Message message;
    for (;;) {
      while (own->Receive(message)) {
        board_->arrived += message.bytes.size();
        own->Release(message);
        if (traffic_.round_trip) Put(*own, 0, text_, traffic_.waiting);
      }
      (void)own->Wait(kNever);
    }
  }

  void SendStamped(Nanos) override {}
  void Progress() override { context_->Progress(); }
  void RoundTrip() override {
    Put(*context_, 1, text_, traffic_.waiting);
    Message message;
    while (!context_->Receive(message)) (void)context_->Wait(Wire::Now() + kSecond);
    context_->Release(message);
  }
  void SendSome() override {
    for (int i = 0; i < 16; ++i) Put(*context_, 1, text_, traffic_.waiting);
  }
  void Finish(Measured&) override {
    const Nanos limit = Wire::Now() + 10 * kSecond;
    while (!context_->Drained(1) && Wire::Now() < limit) context_->Progress();
  }

  const BenchDaemon& daemon_;
  const std::uint16_t number_;
  const bool near_;
  std::vector<std::uint8_t> text_;
  Address addresses_[2];
  std::unique_ptr<Context> context_;
};

struct Row {
  const char* what;
  Traffic traffic;
};

constexpr Row kRows[] = {
    {"round trip 8 B, spinning", {.size = 8}},
    {"round trip 8 B, adaptive", {.size = 8, .waiting = Waiting::kAdaptive}},
    {"round trip 8 KiB, spinning", {.size = 8192}},
    {"bandwidth 64 KiB, spinning", {.size = 65536, .round_trip = false}},
    {"bandwidth 64 KiB, adaptive",
     {.size = 65536, .round_trip = false, .waiting = Waiting::kAdaptive}},
    {"messages of 64 B, spinning", {.size = 64, .round_trip = false}},
};

}  // namespace

void NearBench(const Settings& settings) {
  double load = 0;
  (void)getloadavg(&load, 1);
  printf("%-28s %9s %9s %-5s  memory / UDP min / median / max of %d, load %.1f\n", "", "memory",
         "UDP", "", settings.rounds, load);
  const BenchDaemon daemon;
  std::uint16_t number = 0;
  for (const Row& row : kRows) {
    if (strstr(row.what, settings.only) == nullptr) continue;
    NearEnd near(row.traffic, daemon, number++, true), far(row.traffic, daemon, number++, false);
    const double scale = row.traffic.round_trip ? 1 : 1e-6;
    std::vector<double> values[2];
    for (int round = -1; round < settings.rounds; ++round) {
      // First they come to know their path.
      const double of[2] = {near.Run(settings.time).value, far.Run(settings.time).value};
      for (const int i : {0, 1}) {
        if (round >= 0) values[i].push_back(of[i] * scale);
      }
    }
    Report(row.what, row.traffic.round_trip ? "us" : "MB/s", values[0], values[1]);
    if (!settings.explains) continue;
    near.Explain();
    far.Explain();
  }
}

}  // namespace sekisho::pm
