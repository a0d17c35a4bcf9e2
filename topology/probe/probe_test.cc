// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include <gmock/gmock.h>

#include "topology/probe/prober.h"
#include "topology/probe/responder.h"
#include "topology/probe/sampler.h"

namespace sekisho::topology {
namespace {

TEST(Sampler, EndsASetAfterSoManyPingsWithoutANewMinimum) {
  Sampler sampler({.sets = 1, .stop = 3, .most = 30});
  sampler.Connected();

  for (const double rtt : {100.0, 90.0, 95.0, 91.0, 90.0}) {
    EXPECT_EQ(sampler.Next(), Sampler::Step::kPing);
    sampler.Ponged(rtt);
  }

  EXPECT_EQ(sampler.Next(), Sampler::Step::kEnd);
  EXPECT_EQ(sampler.Result(1).pings, 5);
  EXPECT_EQ(sampler.Result(1).min_us, 90);
}

TEST(Sampler, ReportsTheRangeOfTheMinimaOfItsSets) {
  Sampler sampler({.sets = 2, .stop = 9, .most = 2});
  for (const double rtt : {100.0, 80.0}) {
    EXPECT_EQ(sampler.Next(), Sampler::Step::kConnect);
    sampler.Connected();
    sampler.Ponged(rtt);
    sampler.Ponged(rtt + 5);
  }

  EXPECT_EQ(sampler.Result(1).low_us, 80);
  EXPECT_EQ(sampler.Result(1).high_us, 100);
}

TEST(Sampler, IgnoresAClockThatGoesBackwards) {
  Sampler sampler({.sets = 1, .stop = 9, .most = 3});
  sampler.Connected();
  for (const double rtt : {-50.0, 70.0, -1.0}) {
    sampler.Ponged(rtt);
  }

  EXPECT_TRUE(sampler.Result(1).is_ok);
  EXPECT_EQ(sampler.Result(1).min_us, 70);
}

TEST(Sampler, KeepsWhatItHasWhenAConnectionBreaks) {
  Sampler sampler({.sets = 3, .stop = 9, .most = 9});
  sampler.Connected();
  sampler.Ponged(70);
  sampler.Failed();

  EXPECT_EQ(sampler.Next(), Sampler::Step::kEnd);
  EXPECT_TRUE(sampler.Result(1).is_ok);
}

TEST(Probe, MeasuresAResponder) {
  Responder responder;
  ASSERT_TRUE(responder.Listen("127.0.0.1", 0).ok());
  std::thread thread([&] { responder.Run(); });

  const Answer answer =
      Probe({"127.0.0.1", responder.port()}, {.sets = 2, .stop = 5, .most = 5}, 20000);
  responder.Stop();
  thread.join();

  EXPECT_TRUE(answer.is_ok);
  EXPECT_GE(answer.pings, 2);
  EXPECT_GT(answer.min_us, 0);
  EXPECT_LE(answer.min_us, answer.duration_us);
}

TEST(Probe, SaysSoWhereNobodyAnswers) {
  Responder closed;
  ASSERT_TRUE(closed.Listen("127.0.0.1", 0).ok());  // accepts in the kernel, never answers

  const Answer answer = Probe({"127.0.0.1", closed.port()}, {.sets = 1}, 200);

  EXPECT_FALSE(answer.is_ok);
  EXPECT_FALSE(Probe({"nowhere", 1}, {.sets = 1}, 200).is_ok);
}

TEST(Responder, RefusesAnAddressThatIsNone) {
  Responder responder;

  EXPECT_FALSE(responder.Listen("not.an.address", 0).ok());
}

}  // namespace
}  // namespace sekisho::topology
