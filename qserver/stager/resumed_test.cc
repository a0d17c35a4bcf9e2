// SPDX-License-Identifier: Apache-2.0
#include "qserver/stager/resumed.h"

#include <gtest/gtest.h>

namespace sekisho::qserver::stager {
namespace {

const Fetched kReached{1000, 3000, "\"a\""};

std::optional<uint64_t> SizeOf(const std::string& range, const Fetched& fetched = kReached) {
  return SizeIfGoesOn(fetched, {206, range, "\"a\"", ""});
}

TEST(Resumed, GoesOnAtTheByteThatWasReached) {
  EXPECT_EQ(SizeOf("bytes 1000-2999/3000"), 3000u);
  EXPECT_EQ(SizeOf("bytes 1000-1999/3000"), 3000u);  // and no further: the rest has to be asked for
  EXPECT_EQ(SizeOf("bytes 1000-2999/*"), 3000u);
  EXPECT_EQ(SizeOf("bytes 1000-2999/3000", {1000, std::nullopt, "\"a\""}), 3000u);
}

TEST(Resumed, AnotherPlaceOrSizeIsAnotherContent) {
  for (const char* range :
       {"", "bytes 0-2999/3000", "bytes 10000-29999/30000", "bytes 1000-2999/4000",
        "bytes 1000-3000/3000", "bytes 1000-999/3000", "bytes */3000", "bytes 1000-/3000",
        "bytes -2999/3000", "lines 1000-2999/3000", "bytes 1000-2999/3000x", "bytes 1000-2999/",
        "bytes 1000-2999/**", "bytes 1000-2999", "bytes 1000-2999/99999999999999999999999"}) {
    EXPECT_EQ(SizeOf(range), std::nullopt) << range;
  }
  EXPECT_EQ(SizeOf("bytes 1000-2999/*", {1000, std::nullopt, "\"a\""}),
            std::nullopt);  // nobody can tell when it is whole
}

TEST(Resumed, AnAnswerThatIsNoPartIsAnotherContent) {
  for (const long code : {200L, 204L, 0L}) {
    EXPECT_EQ(SizeIfGoesOn(kReached, {code, "bytes 1000-2999/3000", "\"a\"", ""}), std::nullopt)
        << code;
  }
}

TEST(Resumed, AnotherValidatorIsAnotherContent) {
  const std::string range = "bytes 1000-2999/3000";
  const std::string date = "Tue, 24 Nov 2026 03:47:11 GMT";
  const std::string later = "Tue, 24 Nov 2026 03:47:12 GMT";

  EXPECT_EQ(SizeIfGoesOn(kReached, {206, range, "\"b\"", ""}), std::nullopt);
  EXPECT_EQ(SizeIfGoesOn(kReached, {206, range, "", later}),
            3000u);  // it says none of the kind that counts
  EXPECT_EQ(SizeIfGoesOn({1000, 3000, date}, {206, range, "\"b\"", date}), 3000u);
  EXPECT_EQ(SizeIfGoesOn({1000, 3000, date}, {206, range, "\"b\"", later}), std::nullopt);
}

}  // namespace
}  // namespace sekisho::qserver::stager
