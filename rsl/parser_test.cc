// SPDX-License-Identifier: Apache-2.0
#include "rsl/parser.h"

#include <thread>

#include <pthread.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rsl/evaluator.h"
#include "rsl/gram_errors.h"
#include "rsl/printer.h"

namespace sekisho::rsl {
namespace {

std::string Refusal(std::string_view text) {
  const Result<Spec> spec = Parse(text);
  return spec.ok() ? "accepted: " + Print(*spec) : spec.error().ToString();
}

// The one line that Parse() makes of `text`, or the error.
std::string Reading(std::string_view text) {
  const Result<Spec> spec = Parse(text);
  return spec.ok() ? Print(*spec) : spec.error().ToString();
}

struct Probe {
  std::string text;
  bool is_accepted;
};

// What globusrun 12.2 does with these, and what we do where that is a fault of its scanner.
TEST(RslParser, DecidesTheProbeTable) {
  const Probe probes[] = {
      {"executable=x", false},
      {"(a=1)", false},
      {"&(a=)", false},
      {"&(e=())", false},
      {"&(a=\"\")", true},
      {"&&(a=1)", false},
      {"&(a b=1)", false},
      {"&(|(a=1)(b=2))(c=3)", true},
      {"+(a=1)(b=2)", true},
      {"&(x=$ ( HOME ))", true},
      {"&(a=1)(a=2)", true},
      {"&(no_such_attribute=1)", true},
      {"&(arguments=" + std::string(100'000, 'x') + ")", true},
      {"&(a=" + std::string(2000, '(') + "x" + std::string(2000, ')') + ")", true},
      // Accepted there, and the rest silently dropped.
      {"&(executable=/bin/date)*(count=4)", false},
      {"&(executable=/bin/date)?(count=4)", false},
      {"&(executable=/bin/date)~(count=4)", false},
      {"&(executable=/bin/date)!(count=4)", false},
  };
  for (const Probe& probe : probes) {
    EXPECT_EQ(Parse(probe.text).ok(), probe.is_accepted) << probe.text.substr(0, 80);
  }
}

TEST(RslParser, SaysWhereAndWhatWasExpectedAndSeen) {
  EXPECT_EQ(Refusal("executable=x"),
            "1:1: expected \"&\", \"+\" or \"|\" to start the request, saw \"executable\"; write "
            "&(executable=/bin/date) (GRAM error 48, BAD_RSL)");
  EXPECT_EQ(Refusal(""),
            "1:1: expected a request, saw an empty text (GRAM error 42, ZERO_LENGTH_RSL)");
  EXPECT_EQ(Refusal(" (* nothing *) \n"),
            "2:1: expected a request, saw an empty text (GRAM error 42, ZERO_LENGTH_RSL)");
  EXPECT_EQ(Refusal("&"),
            "1:2: expected \"(\" after \"&\", saw the end of the text (GRAM error 48, BAD_RSL)");
  EXPECT_EQ(Refusal("&(count=)"), "1:9: expected a value, saw \")\" (GRAM error 48, BAD_RSL)");
  EXPECT_EQ(Refusal("&(a=1)\n (b=2"),
            "2:6: expected a value or \")\", saw the end of the text (GRAM error 48, BAD_RSL)");
  EXPECT_EQ(Refusal("&(a=1))"),
            "1:7: expected \"(\" or the end of the text, saw \")\" (GRAM error 48, BAD_RSL)");
  EXPECT_EQ(
      Refusal("&(a b=1)"),
      "1:5: expected \"=\" or another operator after \"a\", saw \"b\" (GRAM error 48, BAD_RSL)");
  EXPECT_EQ(Refusal("&(a!1)"), "1:4: expected \"!=\", saw \"!\" alone (GRAM error 48, BAD_RSL)");
  EXPECT_EQ(Refusal("&(a=$HOME)"),
            "1:6: expected \"(\" after \"$\", saw \"HOME\" (GRAM error 48, BAD_RSL)");
  EXPECT_EQ(
      Refusal("&(a=x#)"),
      "1:7: expected a literal or a variable after \"#\", saw \")\" (GRAM error 48, BAD_RSL)");
  EXPECT_EQ(Refusal("&((a=1))"),
            "1:3: expected an attribute's name, \"&\", \"|\" or \"+\", saw \"(\" (GRAM error 48, "
            "BAD_RSL)");
  EXPECT_EQ(Refusal("&(a=*)"),
            "1:5: expected RSL, saw \"*\", which must be quoted (GRAM error 48, BAD_RSL)");
  EXPECT_EQ(Refusal("&(a=$(X a b))"),
            "1:11: expected \")\" after the variable, saw \"b\" (GRAM error 48, BAD_RSL)");
}

TEST(RslParser, PointsAtTheStartOfWhatIsNotClosed) {
  EXPECT_THAT(Refusal("&(a=\n  \"x)"), testing::StartsWith("2:3: expected a closing \"\"\" for"));
  EXPECT_THAT(Refusal("&(a=1) (* x"),
              testing::StartsWith("1:8: expected \"*)\" to close the comment"));
}

TEST(RslParser, CountsColumnsInCharactersNotBytes) {
  EXPECT_THAT(Refusal("&(a=\"関所\" =)"), testing::StartsWith("1:10: "));
}

TEST(RslParser, ReadsEveryOperator) {
  EXPECT_EQ(Reading("&(a=1)(b!=2)(c>3)(d>=4)(e<5)(f<=6)"), "&(a=1)(b!=2)(c>3)(d>=4)(e<5)(f<=6)");
}

TEST(RslParser, ReadsTheThreeQuotingForms) {
  EXPECT_EQ(Reading(R"(&(a="x ""y""")(b='it''s')(c=^%a "b" 50%%%))"),
            R"(&(a="x ""y""")(b="it's")(c="a ""b"" 50%"))");
  EXPECT_EQ(Reading("&(\"max_Time\"=1)"), "&(maxtime=1)");
  EXPECT_EQ(Reading("&(a=\"back\\slash\")"), "&(a=back\\slash)");
  EXPECT_EQ(Reading("&(a=\"(* no comment *)\")"), "&(a=\"(* no comment *)\")");
}

TEST(RslParser, LetsPrefixCharactersStandInsideALiteral) {
  EXPECT_EQ(Reading("&(a=x+y&z|w)"), "&(a=x+y&z|w)");
  EXPECT_FALSE(Parse("&(a=+x)").ok());
}

TEST(RslParser, JoinsWithHashAndWhereAVariableTouches) {
  EXPECT_EQ(Reading("&(a=x # 'y z' # $(B))"), "&(a=x#\"y z\"#$(B))");
  EXPECT_EQ(Reading("&(a=/tmp/$(B)/c$(D))"), "&(a=/tmp/#$(B)#/c#$(D))");
  EXPECT_EQ(Reading("&(a=$(B)$(C))"), "&(a=$(B)#$(C))");
}

TEST(RslParser, DoesNotJoinWhatIsQuotedOrApart) {
  EXPECT_EQ(Reading("&(a=\"a\"$(B))"), "&(a=a $(B))");
  EXPECT_EQ(Reading("&(a=\"a\"b)"), "&(a=a b)");
  EXPECT_EQ(Reading("&(a=x $(B) y)"), "&(a=x $(B) y)");
  EXPECT_EQ(Reading("&(a=x(**)$(B))"), "&(a=x $(B))");
  EXPECT_EQ(Reading("&(a=(x)y)"), "&(a=(x) y)");
}

TEST(RslParser, TakesCarriageReturnAsWhiteSpaceAndCommentsAnywhere) {
  EXPECT_EQ(Reading("&(* one *)\r\n(a(* two *)=\r\n 1 (* ** ( *) 2)\r\n"), "&(a=1 2)");
}

TEST(RslParser, ReadsNestedRequests) {
  EXPECT_EQ(Reading("+(&(a=1)(|(b=2)(c=3)))(d=4)"), "+(&(a=1)(|(b=2)(c=3)))(d=4)");
}

TEST(RslParser, RefusesANulByte) {
  EXPECT_THAT(Refusal(std::string_view("&(a=b\0c)", 8)),
              testing::StartsWith("1:6: expected RSL, saw a NUL"));
  EXPECT_THAT(Refusal(std::string_view("&(a='b\0c')", 10)),
              testing::StartsWith("1:7: expected text, saw a NUL"));
}

TEST(RslParser, RefusesWhatIsNotUtf8) {
  EXPECT_THAT(Refusal("&(a=1)\n(b='caf\xe9')"),
              testing::StartsWith("2:8: expected UTF-8, saw the byte 0xe9"));
  for (std::string_view bad : {"\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
                               "\xf0\x80\x80\xaf", "\xf4\x90\x80\x80", "\xff", "\xe9\x96"}) {
    EXPECT_THAT(Refusal("&(a=" + std::string(bad) + ")"), testing::HasSubstr("expected UTF-8"))
        << bad;
  }
  EXPECT_TRUE(Parse("&(a=\xc3\xa9\xe9\x96\xa2\xf0\x9f\x9a\xa7)").ok());
  EXPECT_THAT(Refusal("&(a=^関x関)"), testing::StartsWith("1:5: expected an ASCII delimiter"));
}

TEST(RslParser, ShortensWhatItQuotes) {
  EXPECT_LT(Refusal("&(" + std::string(10'000, 'x') + ")").size(), 200u);
}

TEST(RslParser, LimitsSizeWithGramsNumber) {
  const std::string fits = "&(a=" + std::string(kTextSizeMax - 5, 'x') + ")";
  EXPECT_TRUE(Parse(fits).ok());
  EXPECT_EQ(Parse(fits + " ").error().gram_code, gram::INVALID_REQUEST);
}

std::string NestedValues(int depth) {
  return "&(a=" + std::string(depth - 1, '(') + "x" + std::string(depth - 1, ')') + ")";
}

std::string NestedSpecs(int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) {
    text += "&(";
  }
  return text + "a=1" + std::string(depth, ')');
}

std::string NestedVariables(int depth) {
  std::string text = "&(a=";
  for (int i = 1; i < depth; ++i) {
    text += "$(X ";
  }
  return text + "y" + std::string(depth, ')');
}

TEST(RslParser, LimitsDepth) {
  for (const auto make : {NestedValues, NestedSpecs, NestedVariables}) {
    EXPECT_TRUE(Parse(make(kDepthMax)).ok());
    EXPECT_THAT(Refusal(make(kDepthMax + 1)), testing::HasSubstr("expected at most 2048 nested"));
  }
  EXPECT_FALSE(Parse(std::string(kTextSizeMax, '(')).ok());
  EXPECT_FALSE(Parse("&(a=" + std::string(500'000, '(')).ok());
}

void* WalkDeepTrees(void*) {
  for (const auto make : {NestedValues, NestedSpecs, NestedVariables}) {
    const Result<Spec> spec = Parse(make(kDepthMax));
    const Result<Spec> evaluated = Evaluate(*spec, {});
    const Spec copy = *spec;
    EXPECT_TRUE(copy == *spec);
    EXPECT_FALSE(Print(*evaluated).empty());
    EXPECT_FALSE(Format(*evaluated).empty());
  }
  return nullptr;
}

TEST(RslParser, DeepestTreeFitsAStackOfTwoMebibytes) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr size_t kStack = 16 << 20;  // their frames are larger
#else
  constexpr size_t kStack = 2 << 20;
#endif
  pthread_attr_t attributes;
  pthread_t thread;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStack), 0);
  ASSERT_EQ(pthread_create(&thread, &attributes, WalkDeepTrees, nullptr), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

}  // namespace
}  // namespace sekisho::rsl
