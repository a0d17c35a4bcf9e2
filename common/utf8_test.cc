// SPDX-License-Identifier: Apache-2.0
#include "common/utf8.h"

#include <random>

#include <gtest/gtest.h>

namespace sekisho {
namespace {

TEST(Utf8, ValidTextIsLeftAlone) {
  for (const std::string text : {"", "plain", "caf\u00e9", "\u95a2\u6240", "\U0001F600"}) {
    EXPECT_EQ(ToUtf8(text), text);
    EXPECT_EQ(ValidUtf8(text), text.size());
  }
}

TEST(Utf8, ACharacterThatTheLimitCutsIsLeftOut) {
  EXPECT_EQ(ToUtf8("ab\u00e9", 3), "ab");
  EXPECT_EQ(ToUtf8("ab\u00e9", 4), "ab\u00e9");
  EXPECT_EQ(ToUtf8("\U0001F600x", 3), "");
}

TEST(Utf8, BytesOfNoCharacterAreShownAsQuestionMarks) {
  EXPECT_EQ(ToUtf8("a\xff\xfe b"), "a?? b");
  EXPECT_EQ(ToUtf8("caf\xe9"), "caf?");                  // Latin-1
  EXPECT_EQ(ToUtf8("\xc0\xaf"), "??");                   // an overlong slash
  EXPECT_EQ(ToUtf8("\xed\xa0\x80"), "???");              // a surrogate
  EXPECT_EQ(ToUtf8(std::string(3, '\xc3'), 2), "??");
}

TEST(Utf8, AnyBytesBecomeUtf8WithinTheLimit) {
  std::minstd_rand random(7);
  for (int run = 0; run < 20'000; ++run) {
    std::string bytes(random() % 40, '\0');
    for (char& byte : bytes) {
      byte = static_cast<char>(random() % 3 ? random() : "\xc3\xa9\xe9\xf0\x9f"[random() % 5]);
    }
    const size_t most = random() % 50;
    const std::string text = ToUtf8(bytes, most);
    ASSERT_EQ(ValidUtf8(text), text.size());
    ASSERT_LE(text.size(), most);
  }
}

}  // namespace
}  // namespace sekisho
