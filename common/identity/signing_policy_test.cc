// SPDX-License-Identifier: Apache-2.0
#include "common/identity/signing_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::identity {
namespace {

using ::testing::HasSubstr;

constexpr char kPolicy[] =
    "# as distributed\n"
    " access_id_CA      X509         '/C=JP/O=Grid/CN=CA'\n"
    " pos_rights        globus        CA:sign\n"
    " cond_subjects     globus     '\"/C=JP/O=Grid/*\" \"/C=JP/O=Lab/CN=?aro\"'\n"
    "\n"
    "access_id_CA X509 \"/C=JP/O=Grid/CN=Other/Email=ca@example.org\"\n"
    "pos_rights globus CA:sign\n"
    "cond_subjects globus '*'\n"
    "access_id_CA X509 '/CN=no rights'\n"
    "cond_subjects globus '*'\n";

TEST(SigningPolicy, AllowsWhatItsPatternsCover) {
  const SigningPolicy policy = *SigningPolicy::Parse(kPolicy);

  EXPECT_TRUE(policy.Allows("/C=JP/O=Grid/CN=CA", "/C=JP/O=Grid/CN=Taro"));
  EXPECT_TRUE(policy.Allows("/C=JP/O=Grid/CN=CA", "/c=jp/o=grid/CN=Taro"));
  EXPECT_TRUE(policy.Allows("/C=JP/O=Grid/CN=CA", "/C=JP/O=Lab/CN=Taro"));
  EXPECT_FALSE(policy.Allows("/C=JP/O=Grid/CN=CA", "/C=JP/O=Lab/CN=Jaaro"));
  EXPECT_FALSE(policy.Allows("/C=JP/O=Grid/CN=CA", "/C=KR/O=Grid/CN=Taro"));
  EXPECT_FALSE(policy.Allows("/C=JP/O=Grid/CN=CA", "/X=1/C=JP/O=Grid/CN=Taro"));
  EXPECT_TRUE(policy.Allows("/C=JP/O=Grid/CN=Other/emailAddress=ca@example.org", "/CN=anyone"));
  EXPECT_FALSE(policy.Allows("/CN=no rights", "/CN=anyone"));
  EXPECT_FALSE(policy.Allows("/CN=unknown", "/C=JP/O=Grid/CN=Taro"));
}

TEST(SigningPolicy, NamesTheLineOfAnError) {
  for (const std::string text :
       {"pos_rights globus CA:sign\n", "access_id_CA X509\n", "access_id_CA X509 'unclosed\n",
        "access_id_CA X509 '/CN=a'\ncond_subjects globus\n",
        "access_id_CA X509 '/CN=a'\nnonsense\n",
        "access_id_CA X509 '/CN=a'\ncond_subjects globus '\"/CN=unclosed'\n"}) {
    const absl::Status status = SigningPolicy::Parse(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(status.ToString(), HasSubstr("line ")) << text;
  }
}

TEST(SigningPolicy, AnEmptyFileAllowsNothing) {
  EXPECT_FALSE(SigningPolicy::Parse("# nothing\n")->Allows("/CN=a", "/CN=b"));
}

TEST(Pattern, MatchesTheWholeText) {
  EXPECT_TRUE(MatchesPattern("*", ""));
  EXPECT_TRUE(MatchesPattern("a*c", "abbbc"));
  EXPECT_TRUE(MatchesPattern("*a*a*", "xxaxxaxx"));
  EXPECT_FALSE(MatchesPattern("a*c", "abbbcd"));
  EXPECT_FALSE(MatchesPattern("", "a"));
  EXPECT_FALSE(MatchesPattern("a?", "a"));
}

TEST(Pattern, StaysQuickOnHostileInput) {
  const std::string stars = "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b";
  EXPECT_FALSE(MatchesPattern(stars, std::string(20000, 'a')));
}

}  // namespace
}  // namespace sekisho::identity
