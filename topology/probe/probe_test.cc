// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "topology/probe/ping_run.h"
#include "topology/probe/responder.h"
#include "topology/probe/sampler.h"

namespace sekisho::topology {
namespace {

const ProbeKey kKey{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

TEST(Sampler, EndsASetAfterSoManyPingsWithoutANewMinimum) {
  Sampler sampler({.sets = 1, .stop = 3, .most = 30});
  sampler.Connected();

  for (const double rtt : {100.0, 90.0, 95.0, 91.0, 90.0}) {
    EXPECT_EQ(sampler.Next(), Sampler::Step::kPing);
    sampler.Ponged(rtt);
  }

  EXPECT_EQ(sampler.Next(), Sampler::Step::kEnd);
  EXPECT_EQ(sampler.Result().pings, 5);
  EXPECT_EQ(sampler.Result().min_us, 90);
  EXPECT_EQ(sampler.Result().duration_us, 100 + 90 + 95 + 91 + 90 + 1.5 * 90);
}

TEST(Sampler, ReportsTheRangeOfTheMinimaOfItsSets) {
  Sampler sampler({.sets = 2, .stop = 9, .most = 2});
  for (const double rtt : {100.0, 80.0}) {
    EXPECT_EQ(sampler.Next(), Sampler::Step::kConnect);
    sampler.Connected();
    sampler.Ponged(rtt);
    sampler.Ponged(rtt + 5);
  }

  EXPECT_EQ(sampler.Result().low_us, 80);
  EXPECT_EQ(sampler.Result().high_us, 100);
}

TEST(Sampler, IgnoresAClockThatGoesBackwards) {
  Sampler sampler({.sets = 1, .stop = 9, .most = 3});
  sampler.Connected();
  for (const double rtt : {-50.0, 70.0, -1.0}) {
    sampler.Ponged(rtt);
  }

  EXPECT_TRUE(sampler.Result().is_ok);
  EXPECT_EQ(sampler.Result().min_us, 70);
}

TEST(Sampler, IgnoresAClockThatJumpsAhead) {
  Sampler sampler({.sets = 1, .stop = 9, .most = 3});
  sampler.Connected();
  for (const double rtt : {3.6e9, 70.0, 86.4e9}) {
    sampler.Ponged(rtt);
  }

  EXPECT_EQ(sampler.Result().min_us, 70);
}

TEST(Sampler, KeepsWhatItHasWhenAConnectionBreaks) {
  Sampler sampler({.sets = 3, .stop = 9, .most = 9});
  sampler.Connected();
  sampler.Ponged(70);
  sampler.Failed();

  EXPECT_EQ(sampler.Next(), Sampler::Step::kEnd);
  EXPECT_TRUE(sampler.Result().is_ok);
}

class Probing : public ::testing::Test {
 protected:
  Probing() { EXPECT_TRUE(responder_.Listen("127.0.0.1", 0).ok()); }

  // One turn of both sides' loop.
  void Turn(PingRun* run) {
    std::vector<pollfd> waits;
    responder_.Watch(waits);
    if (run != nullptr) {
      waits.push_back(run->Watch());
    }
    poll(waits.data(), waits.size(), 100);
    if (run != nullptr) {
      run->Handle(waits.back().revents);
      run->Expire(PingRun::Clock::now());
      waits.pop_back();
    }
    responder_.Handle(waits);
  }
  Answer Measure(const ProbeKey& key, const Request& request) {
    PingRun run({"127.0.0.1", responder_.port()}, key, request);
    while (!run.IsDone()) {
      Turn(&run);
    }
    return run.answer();
  }
  int Dial() const {
    const sockaddr_in at{.sin_family = AF_INET,
                         .sin_port = htons(responder_.port()),
                         .sin_addr = {htonl(INADDR_LOOPBACK)},
                         .sin_zero = {}};
    const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(file, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    return file;
  }

  Responder responder_;
};

TEST_F(Probing, MeasuresAResponder) {
  responder_.SetKey(kKey);

  const Answer answer = Measure(kKey, {.sets = 2, .stop = 5, .most = 5});

  EXPECT_TRUE(answer.is_ok);
  EXPECT_GE(answer.pings, 2);
  EXPECT_GT(answer.min_us, 0);
  EXPECT_LE(answer.min_us, answer.duration_us);
}

// The kernel has acknowledged what the process, which others keep from running, has not seen yet.
TEST_F(Probing, DoesNotCountThatAProcessMustWaitForAProcessor) {
  responder_.SetKey(kKey);
  PingRun run({"127.0.0.1", responder_.port()}, kKey, {.sets = 1, .stop = 3, .most = 3});
  while (!run.IsDone()) {
    Turn(&run);
    poll(nullptr, 0, 20);
  }

  EXPECT_EQ(run.answer().pings, 3);
  EXPECT_GT(run.answer().min_us, 0);
  EXPECT_LT(run.answer().min_us, 20'000);
}

TEST_F(Probing, GetsNothingWithoutTheKeyOrBeforeThereIsOne) {
  EXPECT_FALSE(Measure(kKey, {}).is_ok);

  responder_.SetKey(kKey);
  ProbeKey wrong = kKey;
  wrong.back() ^= 1;
  EXPECT_FALSE(Measure(wrong, {}).is_ok);
  EXPECT_TRUE(Measure(kKey, {}).is_ok);
}

TEST_F(Probing, AKeyIsJudgedOnlyOnceItIsWhole) {
  responder_.SetKey(kKey);
  const int stranger = Dial();
  Turn(nullptr);

  for (size_t i = 0; i < kKey.size(); ++i) {
    ASSERT_EQ(send(stranger, "\xff", 1, MSG_NOSIGNAL), 1);
    Turn(nullptr);
    ASSERT_EQ(responder_.connections(), 1u) << "after " << i + 1 << " wrong bytes";
  }
  ASSERT_EQ(send(stranger, "\xff", 1, MSG_NOSIGNAL), 1);
  Turn(nullptr);

  EXPECT_EQ(responder_.connections(), 0u);
  close(stranger);
}

TEST_F(Probing, AResponderKeepsNoMoreConnectionsThanItsBound) {
  std::vector<int> dialled;
  for (int i = 0; i < 70; ++i) {
    dialled.push_back(Dial());
    Turn(nullptr);
  }

  EXPECT_EQ(responder_.connections(), 64u);
  for (const int file : dialled) {
    close(file);
  }
}

TEST_F(Probing, SaysSoWhereNobodyListens) {
  PingRun closed({"127.0.0.1", 1}, kKey, {});
  PingRun nowhere({"nowhere", 1}, kKey, {});
  while (!closed.IsDone()) {
    Turn(&closed);
  }

  EXPECT_FALSE(closed.answer().is_ok);
  EXPECT_TRUE(nowhere.IsDone());
  EXPECT_FALSE(nowhere.answer().is_ok);
}

TEST_F(Probing, GivesUpOnASilentPeerAtItsDeadline) {
  PingRun run({"127.0.0.1", responder_.port()}, kKey,
              {});  // accepted by the kernel, never answered
  for (int i = 0; i < 2; ++i) {
    pollfd wait = run.Watch();
    poll(&wait, 1, 100);
    run.Handle(wait.revents);
  }

  run.Expire(run.deadline() - std::chrono::milliseconds(1));
  EXPECT_FALSE(run.IsDone());
  run.Expire(run.deadline());
  EXPECT_TRUE(run.IsDone());
}

TEST(Responder, RefusesAnAddressThatIsNone) {
  Responder responder;

  EXPECT_FALSE(responder.Listen("not.an.address", 0).ok());
}

}  // namespace
}  // namespace sekisho::topology
