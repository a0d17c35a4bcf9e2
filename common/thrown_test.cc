// SPDX-License-Identifier: Apache-2.0
#include "common/thrown.h"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/experimental/awaitable_operators.hpp>

#include "common/caught.h"
#include "common/loop.h"

namespace sekisho {
namespace {

using asio::experimental::awaitable_operators::operator||;

awaitable<void> Throw() {
  throw std::runtime_error("out\nof order");
  co_return;
}

awaitable<absl::StatusOr<int>> SevenUnless(bool throws) {
  if (throws) {
    throw std::runtime_error("out of order");
  }
  co_return 7;
}

awaitable<void> WaitForEver(Loop& loop) {
  for (;;) {
    co_await Sleep(loop, std::chrono::hours(1));
  }
}

awaitable<void> WaitTwiceForEver(Loop& loop) { co_await (WaitForEver(loop) || WaitForEver(loop)); }

awaitable<absl::Status> WaitInVain(Loop& loop) {
  co_await WaitForEver(loop);
  co_return absl::OkStatus();
}

// What leaves `work` when it is cancelled.
template <typename Result>
std::exception_ptr ThrownWhenCancelled(Loop& loop, awaitable<Result> work) {
  std::exception_ptr left;
  asio::cancellation_signal leave;
  co_spawn(loop, std::move(work),
           asio::bind_cancellation_slot(leave.slot(), [&left](const std::exception_ptr& thrown,
                                                              const auto&...) { left = thrown; }));
  loop.poll();
  leave.emit(asio::cancellation_type::terminal);
  loop.run();
  return left;
}

TEST(Thrown, EndsTheProgramForWhichItsCoroutineIsVital) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    Loop loop(1);
    co_spawn(loop, Throw(), Vital("the test"));
    loop.run();
  };

  EXPECT_DEATH(run(), "cannot go on without the test: out.of order");
}

TEST(Thrown, OfOneOfManyIsItsAlone) {
  Loop loop(1);
  bool goes_on = false;
  co_spawn(loop, Throw(), Logged("the test"));
  asio::post(loop, [&] { asio::post(loop, [&] { goes_on = true; }); });
  loop.run();

  EXPECT_TRUE(goes_on);
}

TEST(Thrown, IsOneLine) {
  EXPECT_EQ(WhyThrown(std::make_exception_ptr(std::runtime_error("a\nb\x1b"))), "a?b?");
  EXPECT_EQ(WhyThrown(std::make_exception_ptr(7)), "not a std::exception");
  EXPECT_EQ(WhyThrown(nullptr), std::nullopt);
}

TEST(Thrown, IsNoFaultWhenAWaitWasCancelled) {
  Loop loop(1);
  const std::exception_ptr one = ThrownWhenCancelled(loop, WaitForEver(loop));
  loop.restart();
  const std::exception_ptr two = ThrownWhenCancelled(loop, WaitTwiceForEver(loop));

  EXPECT_TRUE(one);
  EXPECT_EQ(WhyThrown(one), std::nullopt);
  EXPECT_TRUE(two);
  EXPECT_EQ(WhyThrown(two), std::nullopt);
  Vital("the test")(one);
  Vital("the test")(two);
}

TEST(Caught, IsAnErrorOfTheWorkThatThrew) {
  Loop loop(1);
  absl::StatusOr<int> good, bad;
  const auto run = [&]() -> awaitable<void> {
    good = co_await Caught("the test", SevenUnless(false));
    bad = co_await Caught("the test", SevenUnless(true));
  };
  co_spawn(loop, run, Vital("the test"));
  loop.run();

  ASSERT_TRUE(good.ok());
  EXPECT_EQ(*good, 7);
  EXPECT_EQ(bad.status().code(), absl::StatusCode::kInternal);
}

TEST(Caught, LeavesACancellationToWhoCancelled) {
  Loop loop(1);

  const std::exception_ptr left = ThrownWhenCancelled(loop, Caught("the test", WaitInVain(loop)));

  EXPECT_TRUE(left);
  EXPECT_EQ(WhyThrown(left), std::nullopt);
}

}  // namespace
}  // namespace sekisho
