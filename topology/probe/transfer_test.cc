// SPDX-License-Identifier: Apache-2.0
// Flows and copies between two ends in one process.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include <csignal>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "topology/probe/copy.h"
#include "topology/probe/dialled.h"
#include "topology/probe/flow.h"
#include "topology/probe/pull.h"
#include "topology/probe/responder.h"

namespace sekisho::topology {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const ProbeKey kKey{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

// What a prober does for those that dial it.
class Host {
 public:
  explicit Host(Copy* copy) : copy_(copy) {
    EXPECT_TRUE(responder_.Listen("127.0.0.1", 0).ok());
    responder_.SetKey(kKey);
  }
  ProbeTarget at() const { return {"127.0.0.1", responder_.port()}; }

  void Turn(ProbeTask& dialling) {
    std::vector<pollfd> waits{dialling.Watch()};
    for (const auto& visitor : visitors_) {
      waits.push_back(visitor->Watch());
    }
    responder_.Watch(waits);
    poll(waits.data(), waits.size(), 50);
    const auto now = ProbeTask::Clock::now();
    dialling.Handle(waits[0].revents);
    dialling.Expire(now);
    for (size_t i = 0; i < visitors_.size(); ++i) {
      visitors_[i]->Handle(waits[1 + i].revents);
      visitors_[i]->Expire(now);
    }
    responder_.Handle(std::span(waits).subspan(1 + visitors_.size()));
    for (const Responder::Visitor& visitor : responder_.TakeVisitors()) {
      if (visitor.wanted == Wanted::kSink) {
        visitors_.push_back(std::make_unique<SinkTask>(visitor.socket));
      } else {
        visitors_.push_back(std::make_unique<ServeTask>(visitor.socket, copy_));
      }
    }
    std::erase_if(visitors_, [](const auto& visitor) { return visitor->IsDone(); });
  }

 private:
  Responder responder_;
  Copy* copy_;
  std::vector<std::unique_ptr<ProbeTask>> visitors_;
};

class Transfer : public ::testing::Test {
 protected:
  Transfer() {
    std::string name = (fs::temp_directory_path() / "transferXXXXXX").string();
    directory_ = mkdtemp(name.data());
    for (size_t i = 0; i < 1'000'000; ++i) {
      bytes_.push_back(static_cast<char>(i * i >> 7));
    }
    std::ofstream(File("source"), std::ios::binary) << bytes_;
  }
  ~Transfer() override { fs::remove_all(directory_); }
  std::string File(const std::string& name) const { return (directory_ / name).string(); }

  fs::path directory_;
  std::string bytes_;
};

TEST_F(Transfer, ACopyHasItsNameOnlyOnceItIsCommitted) {
  {
    auto copy = *Copy::Create(File("copy"), 3);
    ASSERT_TRUE(copy->Append("abc", 3).ok());
    EXPECT_EQ(*copy->Digest(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_FALSE(fs::exists(File("copy")));
    EXPECT_TRUE(copy->Commit().ok());
  }
  EXPECT_TRUE(fs::exists(File("copy")));
  { EXPECT_TRUE(Copy::Create(File("other"), 3).ok()); }
  EXPECT_FALSE(fs::exists(File("other.part")));
}

TEST_F(Transfer, ACopyRefusesMoreThanItsSizeAndAFileInItsPlace) {
  auto copy = *Copy::Create(File("copy"), 2);

  EXPECT_FALSE(copy->Append("abc", 3).ok());
  EXPECT_EQ(copy->have(), 0u);
  EXPECT_THAT(std::string(Copy::Create(File("copy"), 2).status().message()),
              HasSubstr("copy.part: File exists"));
  EXPECT_FALSE(Copy::Open(File("nothing")).ok());
  EXPECT_FALSE(Copy::Open(directory_.string()).ok());
}

TEST_F(Transfer, ACopyTakesOverWhatAKilledProberLeftAndNothingElse) {
  const std::string path = (directory_ / "copy").string();
  const pid_t child = fork();
  if (child == 0) {
    const auto copy = Copy::Create(path, 10);
    (void)(*copy)->Append("12345", 5);
    raise(SIGKILL);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  ASSERT_TRUE(fs::exists(path + ".part"));

  {
    const auto again = Copy::Create(path, 3);
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_FALSE(Copy::Create(path, 3).ok());  // it is under way
    ASSERT_TRUE((*again)->Append("abc", 3).ok());
    ASSERT_TRUE((*again)->Commit().ok());
  }
  EXPECT_FALSE(fs::exists(path + ".part"));
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "abc");
  EXPECT_EQ(fs::status(path).permissions() & fs::perms::sticky_bit, fs::perms::none);
}

TEST_F(Transfer, APullWaitsForTheNextHostUnlessThatTakesNothing) {
  auto whole = *Copy::Open(File("source"));
  auto copy = *Copy::Create(File("copy"), bytes_.size());
  Host host(whole.get());
  PullRun pull(host.at(), kKey, *copy);
  copy->pace().Give(1, ProbeTask::Clock::now());
  for (int turn = 0; turn < 10; ++turn) {
    host.Turn(pull);  // 50 ms where nothing happens
  }
  EXPECT_FALSE(pull.IsDone());
  EXPECT_LT(copy->have(), bytes_.size() / 2);

  while (!pull.IsDone()) {
    host.Turn(pull);
  }

  EXPECT_TRUE(copy->IsWhole()) << pull.Result();
}

TEST_F(Transfer, APullGoesOnFromAnotherHostWhereTheFirstStopped) {
  auto whole = *Copy::Open(File("source"));
  auto half = *Copy::Create(File("half"), bytes_.size());
  ASSERT_TRUE(half->Append(bytes_.data(), bytes_.size() / 2).ok());
  auto copy = *Copy::Create(File("copy"), bytes_.size());

  auto first = std::make_optional<Host>(half.get());
  PullRun broken(first->at(), kKey, *copy);
  while (copy->have() < bytes_.size() / 2) {
    first->Turn(broken);
  }
  Host second(whole.get());
  const ProbeTarget gone = first->at();
  first.reset();
  while (!broken.IsDone()) {
    second.Turn(broken);
  }
  EXPECT_THAT(broken.Result(), StartsWith("500000 the connection broke"));

  PullRun rest(second.at(), kKey, *copy);
  while (!rest.IsDone()) {
    second.Turn(rest);
  }
  EXPECT_EQ(rest.Result(), "1000000 ");
  EXPECT_EQ(*copy->Digest(), *whole->Digest());

  PullRun nobody(gone, kKey, *half);
  while (!nobody.IsDone()) {
    second.Turn(nobody);
  }
  EXPECT_THAT(nobody.Result(), HasSubstr("cannot connect"));
}

TEST_F(Transfer, APullWaitsForWhatIsStillToComeAsLongAsThereAreSignsOfLife) {
  auto growing = *Copy::Create(File("growing"), bytes_.size());
  auto copy = *Copy::Create(File("copy"), bytes_.size());
  Host host(growing.get());
  PullRun pull(host.at(), kKey, *copy);
  const auto begin = ProbeTask::Clock::now();
  const auto first_deadline = begin + std::chrono::milliseconds(2500);  // longer than its patience

  while (ProbeTask::Clock::now() < first_deadline) {
    host.Turn(pull);
    ASSERT_FALSE(pull.IsDone()) << pull.Result();
  }
  ASSERT_TRUE(growing->Append(bytes_.data(), bytes_.size()).ok());
  while (!pull.IsDone()) {
    host.Turn(pull);
  }

  EXPECT_EQ(pull.Result(), "1000000 ");
}

// Sends `head`, a part, and when `pause` is over another; hears what the other end counted.
class TwoParts final : public ProbeTask {
 public:
  static constexpr size_t kPart = 20'000;

  TwoParts(const ProbeTarget& target, std::string head, std::chrono::milliseconds pause)
      : head_(std::move(head)), pause_(pause), deadline_(Clock::now() + std::chrono::seconds(20)) {
    EXPECT_TRUE(peer_.Dial(target));
  }

  pollfd Watch() const override {
    const bool is_connecting = parts_ == 0;
    return {.fd = peer_.socket(),
            .events = static_cast<short>(is_connecting ? POLLOUT : POLLIN),
            .revents = 0};
  }
  void Handle(short events) override {
    char bytes[64];
    if (parts_ == 0 && events != 0) {
      EXPECT_TRUE(peer_.Greet(kKey, Wanted::kSink) && peer_.Send(head_.data(), head_.size()));
      SendPart();
    } else if (parts_ == 2 && events != 0) {
      const ssize_t count = read(peer_.socket(), bytes, sizeof bytes);
      result_.assign(bytes, count > 0 ? static_cast<size_t>(count) : 0);
      is_done_ = true;
    }
  }
  void Expire(Clock::time_point now) override {
    if (parts_ == 1 && now >= next_) {
      SendPart();
      shutdown(peer_.socket(), SHUT_WR);
    }
    is_done_ = is_done_ || now >= deadline_;
  }
  Clock::time_point deadline() const override { return deadline_; }
  bool IsDone() const override { return is_done_; }
  std::string Result() const override { return result_; }

 private:
  void SendPart() {
    const std::string part(kPart, '\0');
    EXPECT_TRUE(peer_.Send(part.data(), part.size()));
    ++parts_;
    next_ = Clock::now() + pause_;
  }

  Dialled peer_;
  std::string head_;
  std::chrono::milliseconds pause_;
  Clock::time_point next_;
  Clock::time_point deadline_;
  int parts_ = 0;
  bool is_done_ = false;
  std::string result_;
};

// The second part comes later than the flow was to last; that the first came at once is no speed.
TEST_F(Transfer, WhatComesAfterTheEndOfAFlowIsNotCounted) {
  Host host(nullptr);
  TwoParts flow(host.at(), std::string("\x32\0\0\0", 4), std::chrono::milliseconds(200));
  while (!flow.IsDone()) {
    host.Turn(flow);
  }

  EXPECT_LE(std::stoul("0" + flow.Result()), TwoParts::kPart) << flow.Result();
  EXPECT_THAT(flow.Result(), HasSubstr(" 50000\n"));
}

TEST_F(Transfer, AFlowOfASenderThatDoesNotSayHowLongCountsToItsEnd) {
  Host host(nullptr);
  TwoParts flow(host.at(), "", std::chrono::milliseconds(200));
  while (!flow.IsDone()) {
    host.Turn(flow);
  }

  EXPECT_GE(std::stoul("0" + flow.Result()), TwoParts::kPart) << flow.Result();
}

TEST_F(Transfer, AFlowIsCountedWhereItArrives) {
  Host host(nullptr);
  FlowRun flow(host.at(), kKey, std::chrono::milliseconds(50));
  while (!flow.IsDone()) {
    host.Turn(flow);
  }
  EXPECT_GT(ParseFlow(flow.Result()), 1) << flow.Result();

  ProbeKey wrong{};
  FlowRun refused(host.at(), wrong, std::chrono::milliseconds(50));
  while (!refused.IsDone()) {
    host.Turn(refused);
  }
  EXPECT_EQ(refused.Result(), "0 0");
}

TEST_F(Transfer, AFlowThatWaitsIsCountedFromWhenItIsToldToGo) {
  Host host(nullptr);
  FlowRun flow(host.at(), kKey, std::chrono::milliseconds(50), FlowRun::Start::kWhenTold);
  while (!flow.IsWaiting()) {
    host.Turn(flow);
  }
  for (int turn = 0; turn < 4; ++turn) {
    host.Turn(flow);  // longer than the flow is to last
  }
  EXPECT_TRUE(flow.IsWaiting());

  flow.Go();
  while (!flow.IsDone()) {
    host.Turn(flow);
  }

  EXPECT_GT(ParseFlow(flow.Result()), 1) << flow.Result();
  const long us = std::stol(flow.Result().substr(flow.Result().find(' ')));
  EXPECT_GE(us, 30000) << flow.Result();  // without its beginning
}

TEST_F(Transfer, AFlowDoesNotWaitForSomebodyWhoHasGone) {
  auto host = std::make_unique<Host>(nullptr);
  FlowRun flow(host->at(), kKey, std::chrono::milliseconds(50), FlowRun::Start::kWhenTold);
  while (!flow.IsWaiting()) {
    host->Turn(flow);
  }
  host.reset();
  Host other(nullptr);
  while (!flow.IsDone()) {
    other.Turn(flow);
  }

  EXPECT_EQ(flow.Result(), "0 0");
}

}  // namespace
}  // namespace sekisho::topology
