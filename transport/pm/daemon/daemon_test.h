// SPDX-License-Identifier: Apache-2.0
// A sekisho-pmd of its own for a test, a job of two nodes, programs in processes of their own.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "transport/pm/pm.h"
#include "transport/pm/unix_message.h"
#include "transport/pm/wire.h"

namespace sekisho::pm {

// Seen by the test and by its children.
struct Board {
  std::atomic<std::uint64_t> accepted{0}, received{0}, wrong{0};
  std::atomic<int> ready{0}, stop{0}, resting{0}, polls{0};
};

// PMD_TEST_ROUNDS=1000 is the long run.
inline int Rounds(int usual) {
  const char* text = getenv("PMD_TEST_ROUNDS");
  return text != nullptr ? atoi(text) : usual;
}

// For tests/bench/pm/goals: no time is a claim of a test.
inline void PrintSpread(const char* what, std::vector<Nanos> times) {
  if (times.empty()) return;
  std::sort(times.begin(), times.end());
  const auto at = [&](std::size_t percent) {
    return static_cast<double>(times[(times.size() - 1) * percent / 100]) / kMicrosecond;
  };
  std::printf("%zu %s us: p50 %.1f p90 %.1f p99 %.1f, longest %.1f\n", times.size(), what, at(50),
              at(90), at(99), at(100));
}

class DaemonTest : public ::testing::Test {
 public:
  // 0, ENOBUFS or EPIPE.
  static int SendNumber(pmContext* context, int to, std::uint64_t number, std::size_t size) {
    void* buffer;
    if (const int error = pmGetSendBuffer(context, to, &buffer, size)) return error;
    std::memset(buffer, static_cast<int>(number), size);
    std::memcpy(buffer, &number, sizeof number);
    return pmSend(context);
  }

 protected:
  void SetUp() override {
    char name[] = "/tmp/pmd_test_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    std::ofstream(folder_ + "/key") << std::string(32, 'k');
    chmod((folder_ + "/key").c_str(), 0600);
    WriteJob(2);
    setenv("PM_DATAGRAM", "1472", 0);  // most messages are of several, as in most networks
    void* board = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(board, MAP_FAILED);
    board_ = new (board) Board[2];
    StartDaemon();
  }

  // All nodes at an address that hardly another process uses: a port that was free is free still.
  void WriteJob(int nodes) {
    const int pid = getpid();
    const std::string ip =
        "127." + std::to_string(1 + pid % 250) + "." + std::to_string(1 + pid / 250 % 250) + ".1";
    std::vector<std::unique_ptr<Wire>> wires;  // open until each has a port of its own
    std::ofstream job(folder_ + "/job");
    job << "key " << folder_ << "/key\nnodes " << nodes << "\ncontext 5\n";
    for (int node = 0; node < nodes; ++node) {
      Address own;
      wires.push_back(std::make_unique<Wire>());
      ASSERT_FALSE(ParseAddress((ip + ":0").c_str(), own));
      ASSERT_FALSE(wires.back()->Open(own, {}));
      job << "node " << node << " " << ip << ":" << wires.back()->own_address().port << "\n";
    }
  }

  void TearDown() override {
    StopDaemon(SIGKILL);
    unsetenv("PM_DATAGRAM");
    munmap(board_, 4096);
    for (const char* name : {"/key", "/job", "/pmd", "/pmd.lock"}) unlink((folder_ + name).c_str());
    rmdir(folder_.c_str());
  }

  // The daemon and its keepers are a process group of their own.
  void StartDaemon() {
    const char* bin = getenv("SEKISHO_BIN");
    const std::string path =
        std::string(bin != nullptr ? bin : "build/release/bin") + "/sekisho-pmd";
    const std::string socket = folder_ + "/pmd";
    daemon_ = fork();
    ASSERT_GE(daemon_, 0);
    if (daemon_ == 0) {
      setpgid(0, 0);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getenv("PMD_TEST_VERBOSE") == nullptr && freopen("/dev/null", "w", stderr) == nullptr) {
        _exit(1);
      }
      execl(path.c_str(), path.c_str(), "--socket", socket.c_str(), nullptr);
      _exit(127);
    }
    setpgid(daemon_, daemon_);
    const Nanos limit = Wire::Now() + 20 * kSecond;
    int fd = -1;
    while (fd < 0 && Wire::Now() < limit) {
      fd = ConnectDaemon(socket.c_str());
      if (fd < 0) usleep(1000);
    }
    ASSERT_GE(fd, 0) << "sekisho-pmd does not listen";
    close(fd);
  }

  void StopDaemon(int signal) {
    if (daemon_ <= 0) return;
    kill(-daemon_, signal);
    waitpid(daemon_, nullptr, 0);
    daemon_ = -1;
  }

  // 0 or errno, of one attempt.
  int TryOpen(int node, pmContext*& context) {
    std::string job = folder_ + "/job", number = std::to_string(node), socket = folder_ + "/pmd";
    std::string a = "--job", b = "--node", c = "--daemon";
    char* arguments[] = {a.data(), job.data(), b.data(), number.data(), c.data(), socket.data()};
    return pmOpenDevice("udp", 6, arguments, &context);
  }

  pmContext* Open(int node) {
    pmContext* context = nullptr;
    const int error = TryOpen(node, context);
    EXPECT_EQ(error, 0) << strerror(error);
    return context;
  }

  // Runs `body` with a context in a process of its own; returns when that is open.
  template <typename Body>
  pid_t Spawn(int node, Body body) {
    std::array<int, 2> opened;
    EXPECT_EQ(pipe2(opened.data(), O_CLOEXEC), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      pmContext* context = Open(node);
      close(opened[1]);
      if (context != nullptr) body(context);
      _exit(0);
    }
    close(opened[1]);
    char none;
    (void)!read(opened[0], &none, 1);  // until it has closed its end
    close(opened[0]);
    return pid;
  }

  void Kill(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }

  // The daemon's contexts, a line each; with a key file those that have its key.
  std::string List(std::span<const int> key = {}) {
    AskMessage ask;
    std::string all;
    do {
      const int fd = ConnectDaemon((folder_ + "/pmd").c_str());
      AnswerMessage answer;
      Received received;
      EXPECT_EQ(AskDaemon(fd, ask, key, 5000, answer, received), 0);
      close(fd);
      all += answer.text.data();
    } while (TakeMore(all, ask.first));
    return all;
  }

  // Whether an answer is not whole: from where on to ask for the rest.
  static bool TakeMore(std::string& text, std::uint16_t& next) {
    unsigned number = 0;
    const std::size_t at = text.rfind("more ");
    if (at == text.npos || sscanf(text.c_str() + at, "more %u", &number) != 1) return false;
    text.erase(at);
    next = static_cast<std::uint16_t>(number);
    return true;
  }

  bool IsListed(const char* text) { return List().find(text) != std::string::npos; }

  // The keeper of the only context.
  pid_t Keeper() {
    const std::string text = List();
    const std::size_t at = text.find("keeper ");
    return at == std::string::npos ? -1 : atoi(text.c_str() + at + strlen("keeper "));
  }

  // 0 or errno; `text` gets what the daemon says.
  int Control(Ask what, std::uint16_t node, std::string* text = nullptr, int file = -1,
              std::uint32_t timeout_ms = 5000, std::uint16_t first = 0) {
    const int fd = ConnectDaemon((folder_ + "/pmd").c_str());
    const int key = open((folder_ + "/key").c_str(), O_RDONLY | O_CLOEXEC);
    AskMessage ask;
    ask.ask = what;
    ask.config.context = 5;
    ask.config.node = node;
    ask.timeout_ms = timeout_ms;
    ask.first = first;
    AnswerMessage answer;
    Received received;
    const std::array<int, 2> fds = {key, file};
    const int error =
        AskDaemon(fd, ask, std::span(fds).first(file >= 0 ? 2 : 1), 10000, answer, received);
    close(fd);
    close(key);
    if (text != nullptr) *text = answer.text.data();
    return error;
  }

  std::string Top(std::uint16_t node) {
    std::string all;
    std::uint16_t first = 0;
    do {
      std::string text;
      const int error = Control(Ask::kTop, node, &text, -1, 5000, first);
      if (error != 0) return "error " + std::to_string(error);
      all += text;
    } while (TakeMore(all, first));
    return all;
  }

  // The memory of a context of ours, as who traces it gets it; -1 if it was refused.
  int MemoryOf(std::uint16_t node) {
    const int fd = ConnectDaemon((folder_ + "/pmd").c_str());
    const int key = open((folder_ + "/key").c_str(), O_RDONLY | O_CLOEXEC);
    AskMessage ask;
    ask.ask = Ask::kTrace;
    ask.config.context = 5;
    ask.config.node = node;
    AnswerMessage answer;
    Received received;
    EXPECT_EQ(AskDaemon(fd, ask, std::span(&key, 1), 10000, answer, received), 0);
    EXPECT_EQ(received.fd_count, 1u);
    close(fd);
    close(key);
    return received.fds[0];
  }

  // Datagrams that left.
  static std::string Datagrams(const std::string& top) {
    const std::size_t at = top.find("datagrams in");
    return top.substr(at, top.find('\n', at) - at);
  }

  // The next message's number; whether its contents are whole goes to the board.
  bool ReceiveNumber(pmContext* context, std::uint64_t& number, int& error) {
    void* buffer;
    std::size_t length;
    error = pmReceive(context, &buffer, &length);
    if (error != 0) return false;
    std::memcpy(&number, buffer, sizeof number);
    const auto* bytes = static_cast<const unsigned char*>(buffer);
    for (std::size_t i = sizeof number; i < length; ++i) {
      if (bytes[i] != static_cast<unsigned char>(number)) ++board_->wrong;
    }
    EXPECT_EQ(pmReleaseReceiveBuffer(context), 0);
    return true;
  }

  template <typename Condition>
  static bool Until(Nanos time, Condition condition) {
    const Nanos limit = Wire::Now() + time;
    while (!condition()) {
      if (Wire::Now() > limit) return false;
    }
    return true;
  }

  std::string folder_;
  pid_t daemon_ = -1;
  Board* board_ = nullptr;
};

}  // namespace sekisho::pm
