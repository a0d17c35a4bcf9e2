// SPDX-License-Identifier: Apache-2.0
#include "client/job/transfers.h"

#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(Transfers, SaysOfOneFileItsNameBytesRateAndTimeLeft) {
  Transfers transfers;
  transfers.Reach("client:///home/taro/in.dat", 0, 1024 * kMiB);
  transfers.Reach("client:///home/taro/in.dat", 256 * kMiB, 1024 * kMiB);

  EXPECT_EQ(transfers.Text(2, 120),
            "in.dat  [##--------]  25 %  256.0 MiB of 1.0 GiB  128.0 MiB/s  6 s left");
}

TEST(Transfers, OfSeveralSaysHowManyHaveArrivedAndSumsTheirBytes) {
  Transfers transfers;
  transfers.Reach("a", 0, 600);
  transfers.Reach("b", 0, 300);
  transfers.Reach("c", 0, 124);
  transfers.Reach("a", 600, 600);

  EXPECT_EQ(transfers.Text(3, 120), "1 of 3 files  [#####-----]  58 %  600 B of 1.0 KiB  200 B/s  3 s left");
}

TEST(Transfers, RateCountsOnlyWhatHasComeByUs) {
  Transfers transfers;
  transfers.Reach("a", 900 * kMiB, 1000 * kMiB);
  EXPECT_EQ(transfers.Text(0, 120), "a  [#########-]  90 %  900.0 MiB of 1000.0 MiB");

  transfers.Reach("a", 901 * kMiB, 1000 * kMiB);

  EXPECT_EQ(transfers.Text(1, 120), "a  [#########-]  90 %  901.0 MiB of 1000.0 MiB  1.0 MiB/s  1 min 39 s left");
}

TEST(Transfers, AFileThatBeginsAnewCountsAnew) {
  Transfers transfers;
  transfers.Reach("a", 500, 1000);
  transfers.Reach("a", 800, 1000);
  transfers.Reach("a", 0, 2000);  // it has changed meanwhile
  transfers.Reach("a", 200, 2000);

  EXPECT_EQ(transfers.Text(1, 120), "a  [#---------]  10 %  200 B of 2.0 KiB  200 B/s  9 s left");
}

TEST(Transfers, AreCompleteOnceNothingThatIsKnownIsMissing) {
  Transfers transfers;
  transfers.Reach("a", 0, 10);
  EXPECT_FALSE(transfers.IsComplete());
  transfers.Reach("empty", 0, 0);
  transfers.Reach("a", 10, 10);
  EXPECT_TRUE(transfers.IsComplete());
  EXPECT_EQ(transfers.Text(1, 120), "2 of 2 files  [##########]  100 %  10 B of 10 B  10 B/s  0 s left");
}

TEST(Transfers, LongTimesAreInHours) {
  Transfers transfers;
  transfers.Reach("a", 0, 36'000);
  transfers.Reach("a", 1'000, 36'000);

  EXPECT_NE(transfers.Text(100, 120).find("  10 B/s  58 min 20 s left"), std::string::npos);
  EXPECT_NE(transfers.Text(1000, 120).find("  1 B/s  9 h 43 min left"), std::string::npos);
}

TEST(Transfers, FitsTheTerminalAndCutsNoCharacter) {
  Transfers transfers;
  transfers.Reach("client:///\xe9\x96\xa2\xe6\x89\x80\xe9\x96\xa2\xe6\x89\x80.dat", 512, 1024);

  EXPECT_EQ(transfers.Text(0, 46), "\xe9\x96\xa2\xe6\x89\x80  [#####-----]  50 %  512 B of 1.0 KiB");
  EXPECT_EQ(transfers.Text(0, 10), "  [#####--");
  EXPECT_EQ(transfers.Text(0, 0), "");
}

TEST(Transfers, ANameCannotMoveTheCursor) {
  Transfers transfers;
  transfers.Reach("client:///tmp/a\r\033[2J", 1, 2);

  EXPECT_EQ(transfers.Text(0, 120).rfind("a\\x0d\\x1b[2J  [", 0), 0u);
}

}  // namespace
}  // namespace sekisho::client
