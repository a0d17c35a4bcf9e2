// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/orders.h"

#include <gmock/gmock.h>

#include "topology/text_format.h"

namespace sekisho::topology {
namespace {

std::string_view Line(const std::string& printed) {
  return std::string_view(printed).substr(0, printed.find('\n'));
}

TEST(Orders, AreReadAsTheyWerePrinted) {
  const ProbeKey key{0, 1, 0xff, 0x10};
  const std::string key_line = PrintKeyOrder(key);
  const std::string measure =
      PrintMeasureOrder(17, {"10.64.0.3", 41000}, {.sets = 2, .stop = 5, .most = 30});

  EXPECT_EQ(ParseOrder(Line(key_line))->key, key);
  const auto order = ParseOrder(Line(measure));
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(order->kind, ProbeOrder::Kind::kMeasure);
  EXPECT_EQ(order->id, 17);
  EXPECT_EQ(order->target.address, "10.64.0.3");
  EXPECT_EQ(order->target.port, 41000);
  EXPECT_EQ(order->request.most, 30);
  EXPECT_EQ(ParseOrder("Q")->kind, ProbeOrder::Kind::kQuit);
}

TEST(Orders, OfCopiesTakeAnyPath) {
  const std::string source = PrintSourceOrder(3, "/home/x/a file  with blanks");
  const std::string target = PrintTargetOrder(4, 1ull << 40, " /d/e ");

  EXPECT_EQ(ParseOrder(Line(source))->path, "/home/x/a file  with blanks");
  EXPECT_EQ(ParseOrder(Line(target))->path, " /d/e ");
  EXPECT_EQ(ParseOrder(Line(target))->number, 1ull << 40);
  const std::string pull = PrintPullOrder(5, {"10.0.0.1", 7});
  EXPECT_EQ(ParseOrder(Line(pull))->kind, ProbeOrder::Kind::kPull);
  const std::string flow = PrintFlowOrder(6, {"10.0.0.1", 7}, 500);
  EXPECT_EQ(ParseOrder(Line(flow))->number, 500u);
  const std::string wait = PrintWaitOrder(7, {"10.0.0.1", 7}, 500);
  EXPECT_EQ(ParseOrder(Line(wait))->kind, ProbeOrder::Kind::kWait);
  EXPECT_EQ(ParseOrder(Line(wait))->number, 500u);
  const std::string go = PrintGoOrder(8, 7);
  EXPECT_EQ(ParseOrder(Line(go))->kind, ProbeOrder::Kind::kGo);
  EXPECT_EQ(ParseOrder(Line(go))->number, 7u);
  EXPECT_EQ(ParseFlow("1000000 1000000"), 8);
  EXPECT_EQ(ParseFlow("0 0"), 0);
}

TEST(Orders, OfAnyOtherFormAreRefused) {
  for (const char* line : {"",
                           "K 00",
                           "K zz0102030405060708090a0b0c0d0e0f",
                           "M 1 10.0.0.1 0 1 1 1",
                           "M 1 10.0.0.1 70000 1 1 1",
                           "M 1 10.0.0.1 5 0 1 1",
                           "M 1 10.0.0.1 5 1 1 100000",
                           "M -1 10.0.0.1 5 1 1 1",
                           "M 1 10.0.0.1 5 1 1",
                           "M 1 1000000000.0.0.0.1 5 1 1 1",
                           "Q now",
                           "S 1",
                           "T 1 x /a",
                           "T 1 5",
                           "F 1 10.0.0.1 5 0",
                           "W 1 10.0.0.1 5 0",
                           "G 1",
                           "P 1 10.0.0.1",
                           "H",
                           "Z 1"}) {
    EXPECT_FALSE(ParseOrder(line).has_value()) << line;
  }
}

TEST(Orders, TheirAnswersAreReadAsTheyWerePrinted) {
  const std::string ready = PrintReady({{"10.64.0.3", 41000}, "h2"});
  const std::string result = PrintResult(17, "90.0 90.0 95.0 4 500.0");

  EXPECT_EQ(ParseReady(Line(ready))->name, "h2");
  EXPECT_EQ(ParseReady(Line(ready))->at.port, 41000);
  const auto parsed = ParseResult(Line(result));
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->id, 17);
  EXPECT_EQ(ParseAnswer(parsed->answer, {.sets = 1, .most = 4})->high_us, 95);
  EXPECT_FALSE(ParseResult("A x 1 1 1 1 1").has_value());
  EXPECT_FALSE(ParseResult("Welcome to host h2").has_value());
  EXPECT_FALSE(ParseReady("Welcome to host h2").has_value());
}

}  // namespace
}  // namespace sekisho::topology
