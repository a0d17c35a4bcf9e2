// SPDX-License-Identifier: Apache-2.0
#include "common/newest_call.h"

#include <optional>

#include <gtest/gtest.h>

namespace sekisho {
namespace {

class NewestCallTest : public ::testing::Test {
 protected:
  // Whether `call` is over, once all has run that can.
  bool IsTakenOver(const NewestCall& call) {
    bool is_over = false;
    co_spawn(loop_, call.UntilTakenOver(), [&](const std::exception_ptr&) { is_over = true; });
    loop_.restart();
    loop_.poll();
    return is_over;
  }

  Loop loop_;
  NewestCalls calls_;
};

TEST_F(NewestCallTest, EndsThoseBeforeForTheSameKeyAndNoOther) {
  const NewestCall first(calls_, loop_, "job1"), other(calls_, loop_, "job2"),
      second(calls_, loop_, "job1");

  EXPECT_TRUE(IsTakenOver(first));
  EXPECT_FALSE(IsTakenOver(second));
  EXPECT_FALSE(IsTakenOver(other));
}

TEST_F(NewestCallTest, TellsWhoWaitsAlready) {
  const NewestCall first(calls_, loop_, "job");
  bool is_over = false;
  co_spawn(loop_, first.UntilTakenOver(), [&](const std::exception_ptr&) { is_over = true; });
  loop_.poll();
  EXPECT_FALSE(is_over);
  const NewestCall second(calls_, loop_, "job");
  loop_.restart();
  loop_.poll();
  EXPECT_TRUE(is_over);
}

TEST_F(NewestCallTest, LeavesNothingBehindWhicheverEndsFirst) {
  std::optional<NewestCall> first(std::in_place, calls_, loop_, "job"),
      second(std::in_place, calls_, loop_, "job");
  first.reset();
  EXPECT_FALSE(calls_.empty());
  const NewestCall third(calls_, loop_, "job");
  EXPECT_TRUE(IsTakenOver(*second)) << "although the first has gone";
  second.reset();
  EXPECT_FALSE(calls_.empty());

  std::optional<NewestCall> alone(std::in_place, calls_, loop_, "another");
  alone.reset();
  { const NewestCall last(calls_, loop_, "job"); }
  EXPECT_TRUE(calls_.empty());
}

}  // namespace
}  // namespace sekisho
