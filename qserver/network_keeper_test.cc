// SPDX-License-Identifier: Apache-2.0
#include "qserver/network_keeper.h"

#include <deque>
#include <sstream>

#include <gmock/gmock.h>

#include "topology/sim/families.h"
#include "topology/sim/network.h"
#include "topology/sim/score.h"

namespace sekisho::qserver {
namespace {

// Agents with probers on a network that is known.
class NetworkKeeperTest : public ::testing::Test {
 protected:
  static std::string Node(int host) { return "n" + std::to_string(100 + host); }
  static int Host(const std::string& node) { return std::stoi(node.substr(1)) - 100; }

  void Attach(int first, int last) {
    for (int host = first; host < last; ++host) {
      keeper_.Attached(Node(host), now_s_);
    }
  }

  // A message of the agent of `node` about its prober.
  proto::AgentMessage Output(const std::string& node, const std::string& text) {
    proto::AgentMessage message;
    *message.mutable_output()->mutable_task() = task_[node];
    message.mutable_output()->set_offset(said_[node]);
    message.mutable_output()->set_data(text);
    said_[node] += text.size();
    return message;
  }

  void Obey(const std::string& node, const std::string& lines) {
    std::istringstream in(lines);
    for (std::string line; std::getline(in, line);) {
      const auto order = topology::ParseOrder(line);
      ASSERT_TRUE(order) << line;
      if (order->kind == topology::ProbeOrder::Kind::kMeasure) {
        topology::Request request = order->request;
        request.from = Host(node);
        request.to = order->target.port - 1000;
        ++measured_;
        std::string answer = topology::PrintAnswer(network_.Measure(request));
        answer.pop_back();
        in_.push_back({node, Output(node, topology::PrintResult(order->id, answer))});
      } else if (order->kind == topology::ProbeOrder::Kind::kQuit) {
        proto::AgentMessage message;
        *message.mutable_exited()->mutable_task() = task_[node];
        in_.push_back({node, message});
      }
    }
  }

  void Take(const std::string& node, const proto::ServerMessage& message) {
    if (message.has_start()) {
      EXPECT_EQ(message.start().account(), "nobody");
      task_[node] = message.start().task();
      said_[node] = 0;
      ++started_;
      if (is_mute_.contains(node)) {
        return;
      }
      in_.push_back({node, Output(node, topology::PrintReady(
                                            {{"10.0.0.1", uint16_t(1000 + Host(node))}, node}))});
    } else if (message.has_input() && !is_mute_.contains(node)) {
      Obey(node, message.input().data());
    } else if (message.has_forget()) {
      ++forgotten_;
    }
  }

  // Until nobody has anything to say.
  void Run(int steps = 1'000'000) {
    while (!in_.empty() && steps-- > 0) {
      const auto [node, message] = in_.front();
      in_.pop_front();
      EXPECT_TRUE(keeper_.Handle(node, message, now_s_));
    }
  }
  void Sleep(double seconds) {
    for (int i = 0; i < seconds; ++i) {
      now_s_ += 1;
      keeper_.Tick(now_s_);
      Run();
    }
  }
  double Accuracy() const {
    std::vector<std::string> names;
    for (int host = 0; host < truth_.host_count; ++host) {
      names.push_back(Node(host));
    }
    return topology::sim::Judge(
               truth_, topology::ParseTree(keeper_.upkeep().Text(), "tree", names)->tree, 20000)
        .accuracy;
  }

  double now_s_ = 1000;
  topology::sim::Truth truth_ = *topology::sim::MakeFamily("single64", 91);
  topology::sim::Network network_{truth_, 5};
  std::deque<std::pair<std::string, proto::AgentMessage>> in_;
  std::map<std::string, proto::TaskKey> task_;
  std::map<std::string, uint64_t> said_;
  std::set<std::string> is_mute_;
  int started_ = 0;
  int forgotten_ = 0;
  int measured_ = 0;
  NetworkKeeper keeper_{
      {.upkeep = {.period_s = 600},
       .prober = "sekisho-agent",
       .account = "nobody",
       .interface = {}},
      [this](const std::string& node, const proto::ServerMessage& message) { Take(node, message); },
      [number = uint8_t{0}]() mutable {
        return topology::ProbeKey{++number, 2, 3};
      }};
};

TEST_F(NetworkKeeperTest, InfersTheTreeOfTheNodesThatAttach) {
  Attach(0, 64);
  Sleep(10);

  EXPECT_EQ(keeper_.TakeNews(), "inferred anew");
  EXPECT_GE(Accuracy(), 0.99);
  EXPECT_EQ(started_, 64);
  EXPECT_EQ(forgotten_, 64);  // no prober is left
}

TEST_F(NetworkKeeperTest, PlacesANodeThatAttachesLater) {
  Attach(0, 63);
  Sleep(10);
  keeper_.TakeNews();
  measured_ = 0;

  Attach(63, 64);
  Sleep(10);

  EXPECT_EQ(keeper_.TakeNews(), "1 host placed");
  EXPECT_LE(measured_, 2 * 64 + 36 + 20);
  EXPECT_GE(Accuracy(), 0.99);
}

TEST_F(NetworkKeeperTest, LooksAgainEveryTenMinutes) {
  Attach(0, 64);
  Sleep(10);
  keeper_.TakeNews();
  started_ = 0;

  Sleep(590);
  EXPECT_EQ(started_, 0);
  Sleep(20);

  EXPECT_EQ(started_, 64);
  EXPECT_EQ(keeper_.TakeNews(), "");
}

TEST_F(NetworkKeeperTest, DoesWithoutANodeWhoseProberNeverSpeaks) {
  is_mute_.insert(Node(5));
  Attach(0, 64);
  Sleep(40);

  EXPECT_EQ(keeper_.TakeNews(), "inferred anew");
  EXPECT_EQ(keeper_.upkeep().tree().tree.host_count, 63);
}

TEST_F(NetworkKeeperTest, DoesWithoutANodeThatFallsSilentInMidSession) {
  Attach(0, 64);
  now_s_ += 10;
  keeper_.Tick(now_s_);
  Run(64);  // all are ready
  keeper_.Tick(now_s_);
  Run(300);
  is_mute_.insert(Node(7));
  std::erase_if(in_, [](const auto& one) { return one.first == Node(7); });
  Sleep(30);

  EXPECT_EQ(keeper_.TakeNews(), "inferred anew");
  EXPECT_EQ(keeper_.upkeep().tree().tree.host_count, 63);
}

TEST_F(NetworkKeeperTest, DoesWithoutANodeThatDetachesInMidSession) {
  Attach(0, 64);
  now_s_ += 10;
  keeper_.Tick(now_s_);
  Run(64);
  keeper_.Tick(now_s_);
  Run(300);
  keeper_.Detached(Node(7), now_s_);
  Sleep(30);

  EXPECT_EQ(keeper_.TakeNews(), "inferred anew");
  EXPECT_EQ(keeper_.upkeep().tree().tree.host_count, 63);
}

TEST_F(NetworkKeeperTest, LeavesJobsTasksAlone) {
  proto::AgentMessage message;
  message.mutable_exited()->mutable_task()->set_job_id("k3");

  EXPECT_FALSE(keeper_.Handle("n1", message, now_s_));
}

TEST_F(NetworkKeeperTest, LosesAProberThatTalksNonsense) {
  Attach(0, 64);
  now_s_ += 10;
  keeper_.Tick(now_s_);
  Run(64);
  keeper_.Tick(now_s_);
  in_.push_front({Node(9), Output(Node(9), "A 999999 1 2 3\n")});
  Sleep(30);

  EXPECT_EQ(keeper_.upkeep().tree().tree.host_count, 63);
}

}  // namespace
}  // namespace sekisho::qserver
