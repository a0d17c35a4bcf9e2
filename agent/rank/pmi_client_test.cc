// SPDX-License-Identifier: Apache-2.0
#include "agent/rank/pmi_client.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

#include <gmock/gmock.h>

#include "agent/pmi_ranks.h"

namespace sekisho::agent {
namespace {

using testing::ElementsAre;
using testing::Optional;

TEST(ProcessMapping, TellsTheNodeOfEachRank) {
  EXPECT_THAT(ParseProcessMapping("(vector,(0,2,1),(2,1,2))", 4),
              Optional(ElementsAre(0, 1, 2, 2)));
  EXPECT_THAT(ParseProcessMapping("(vector,(0,1,2))", 2), Optional(ElementsAre(0, 0)));
}

TEST(ProcessMapping, IsRefusedUnlessItIsOfSoManyRanks) {
  EXPECT_FALSE(ParseProcessMapping("(vector,(0,2,1))", 3));
  EXPECT_FALSE(ParseProcessMapping("(vector,(0,2,2))", 3));
  EXPECT_FALSE(ParseProcessMapping("", 1));
  EXPECT_FALSE(ParseProcessMapping("(vector,(0,1000000000,1000000000))", 2));
  EXPECT_FALSE(ParseProcessMapping("(vector,(-1,1,1))", 1));
}

TEST(ProcessMapping, IsRefusedIfItHasANodeWithoutRanks) {
  EXPECT_THAT(ParseProcessMapping("(vector,(1,1,1),(0,1,1))", 2), Optional(ElementsAre(1, 0)));
  EXPECT_FALSE(ParseProcessMapping("(vector,(1,1,2))", 2));
  EXPECT_FALSE(ParseProcessMapping("(vector,(0,1,1),(2,1,1))", 2));
  EXPECT_FALSE(ParseProcessMapping("(vector,(2147483647,2,1))", 2));
}

// The agent's half answers at the other end, for one rank that is alone in its world.
class PmiClientTest : public testing::Test {
 protected:
  PmiClientTest() {
    agent_ = std::thread([this] { Answer(); });
  }
  ~PmiClientTest() override {
    shutdown(pair_[0], SHUT_RDWR);
    agent_.join();
    close(pair_[0]);
    close(pair_[1]);
  }

 private:
  void Answer() {
    PmiRanks ranks(1, 1, "world-7");
    std::string input;
    uint64_t lines = 0;
    char buffer[4096];
    for (ssize_t n; (n = read(pair_[1], buffer, sizeof buffer)) > 0;) {
      input.append(buffer, size_t(n));
      for (size_t end; (end = input.find('\n')) != std::string::npos; input.erase(0, end + 1)) {
        auto effects = ranks.OnLine(0, ++lines, input.substr(0, end));
        if (effects.fence) {
          effects = ranks.OnFenceDone(*effects.fence);
        }
        for (const auto& [rank, line] : effects.lines) {
          EXPECT_EQ(write(pair_[1], line.data(), line.size()), ssize_t(line.size()));
        }
      }
    }
  }
  static std::array<int, 2> MakePair() {
    std::array<int, 2> pair;
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), 0);
    return pair;
  }

  const std::array<int, 2> pair_ = MakePair();
  std::thread agent_;

 protected:
  PmiClient client_{pair_[0]};
};

TEST_F(PmiClientTest, ValuesOfAnyBytesAndLengthComeBack) {
  ASSERT_TRUE(client_.Init());
  for (const size_t size : {0, 1, 479, 480, 481, 5000}) {
    std::string value;
    for (size_t i = 0; i < size; ++i) {
      value += char(i * 7);
    }

    ASSERT_TRUE(client_.Put("key" + std::to_string(size), value));
    ASSERT_TRUE(client_.Barrier());

    EXPECT_EQ(client_.Get("key" + std::to_string(size)), value) << size;
  }
  EXPECT_FALSE(client_.Get("other"));
  EXPECT_TRUE(client_.Finalize());
}

TEST_F(PmiClientTest, MaySpeakForItsNode) { EXPECT_TRUE(client_.Represent()); }

}  // namespace
}  // namespace sekisho::agent
