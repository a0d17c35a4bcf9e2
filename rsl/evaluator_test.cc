// SPDX-License-Identifier: Apache-2.0
#include "rsl/evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rsl/gram_errors.h"
#include "rsl/parser.h"
#include "rsl/printer.h"

namespace sekisho::rsl {
namespace {

const Variables kAtSite = {{"HOME", "/home/alice"}, {"EMPTY", ""}};

// The evaluated text, without the substitutions; or the error.
std::string Evaluated(std::string_view text, const Variables& variables = kAtSite) {
  const Result<Spec> spec = Parse(text);
  if (!spec.ok()) {
    return spec.error().ToString();
  }
  const Result<Spec> evaluated = Evaluate(*spec, variables);
  return evaluated.ok() ? Print(*evaluated) : evaluated.error().ToString();
}

TEST(RslEvaluator, ReplacesVariablesAndJoinsTexts) {
  EXPECT_EQ(
      Evaluated("&(a=$(HOME))(b=$(HOME)/x)(c=p#'q r'#$(HOME))(d=(1 ($(HOME))))(e=$(EMPTY))"),
      "&(a=/home/alice)(b=/home/alice/x)(c=\"pq r/home/alice\")(d=(1 (/home/alice)))(e=\"\")");
}

TEST(RslEvaluator, DefinesFromLeftToRight) {
  EXPECT_EQ(Evaluated("&(rsl_substitution=(A 1)(B $(A)2))(c=$(B))"),
            "&(rslsubstitution=(A 1) (B 12))(c=12)");
  EXPECT_THAT(Evaluated("&(c=$(B))(rsl_substitution=(B 1))"), testing::HasSubstr("$(B)"));
}

TEST(RslEvaluator, LetsAnInnerScopeSeeAndHideTheOuter) {
  EXPECT_EQ(
      Evaluated("&(rsl_substitution=(A 1)(B 2))(&(rsl_substitution=(A x))(a=$(A)$(B)))(b=$(A))"),
      "&(rslsubstitution=(A 1) (B 2))(&(rslsubstitution=(A x))(a=x2))(b=1)");
}

TEST(RslEvaluator, GivesEachPartOfAMultiRequestItsOwnScope) {
  EXPECT_EQ(
      Evaluated("+(rsl_substitution=(A 1))(&(rsl_substitution=(B 2))(a=$(A)$(B)))(&(a=$(A)))"),
      "+(rslsubstitution=(A 1))(&(rslsubstitution=(B 2))(a=12))(&(a=1))");
  EXPECT_EQ(
      Evaluated("+(&(rsl_substitution=(B 2)))(&(a=$(B)))"),
      "1:34: a: expected a defined variable, saw $(B), which is not defined; define it before its "
      "use with (rsl_substitution = (B value)), or give a default: $(B default) (GRAM error 39, "
      "RSL_EVALUATION_FAILED)");
}

TEST(RslEvaluator, UsesADefaultOnlyWhenUndefined) {
  EXPECT_EQ(Evaluated("&(a=$(NONE /tmp))(b=$(HOME /tmp))(c=$(NONE $(HOME)))(d=$(EMPTY x))"),
            "&(a=/tmp)(b=/home/alice)(c=/home/alice)(d=\"\")");
}

TEST(RslEvaluator, ComputesANameFirst) {
  EXPECT_EQ(Evaluated("&(rsl_substitution=(WHICH HOME))(a=$($(WHICH)))"),
            "&(rslsubstitution=(WHICH HOME))(a=/home/alice)");
}

TEST(RslEvaluator, RefusesWhatIsNotAPair) {
  for (std::string_view text : {"&(rsl_substitution=A)", "&(rsl_substitution=(A))",
                                "&(rsl_substitution=(A b c))", "&(rsl_substitution=(A (b)))",
                                "&(rsl_substitution=(\"\" b))", "&(rsl_substitution>(A b))"}) {
    EXPECT_THAT(Evaluated(text), testing::HasSubstr("GRAM error 39")) << text;
  }
}

TEST(RslEvaluator, EndsASubstitutionThatDoublesItself) {
  std::string text = "&(rsl_substitution=(A0 xxxxxxxxxx)";
  for (int i = 1; i < 40; ++i) {
    const std::string last = "$(A" + std::to_string(i - 1) + ")";
    text += "(A" + std::to_string(i) + " " + last + last + ")";
  }
  EXPECT_THAT(Evaluated(text + ")(a=$(A39))"), testing::HasSubstr("at most 1048576 bytes"));
}

TEST(RslEvaluator, YieldsNoTextThatCouldNotBeParsedAgain) {
  const std::string half(600'000, 'x');
  EXPECT_TRUE(Parse(Evaluated("&(a=" + half + ")(b=$(Y))", {{"Y", "short"}})).ok());
  EXPECT_THAT(Evaluated("&(a=" + half + ")(b=$(Y))", {{"Y", half}}),
              testing::StartsWith("1:1: expected at most 1048576 bytes once evaluated"));
  EXPECT_THAT(Evaluated("&(a='" + std::string(600'000, '"') + "')"),
              testing::HasSubstr("once evaluated"));
}

TEST(RslEvaluator, LetsAClientCheckWithoutTheSitesValues) {
  EXPECT_EQ(Evaluated("&(a=$(HOME)/x)", UnknownSiteVariables()), "&(a=\"$(HOME)/x\")");
  EXPECT_EQ(UnknownSiteVariables().size(), SiteVariableNames().size());
}

}  // namespace
}  // namespace sekisho::rsl
