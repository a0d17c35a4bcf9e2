// SPDX-License-Identifier: Apache-2.0
#include "rsl/printer.h"

#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "rsl/parser.h"

namespace sekisho::rsl {
namespace {

// Trees that Parse() could have made.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  Spec Request() {
    Spec spec = Boolean(3);
    return spec;
  }

 private:
  int Below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  std::string Text() {
    static const std::vector<std::string> kAlphabet = {
        "a", "b", "Z", "0", "_", "-", ".",  "/",  ":",  ",",  "@",    "%",  "+",
        "&", "|", "=", "!", " ", "<", ">",  "(",  ")",  "(*", "*)",   "\"", "'",
        "^", "*", "$", "#", "?", "~", "\t", "\r", "\n", "\\", "\x7f", "関"};
    std::string text;
    for (int length = Below(8); length > 0; --length) {
      text += kAlphabet[Below(static_cast<int>(kAlphabet.size()))];
    }
    return text;
  }

  std::string Name() {
    std::string name;
    while (Canonical(name).empty()) {
      name = Below(2) == 0 ? "Max_Wall_Time" : Text();
    }
    return name;
  }

  Value Operand(int depth) {
    if (depth == 0 || Below(3) > 0) {
      return {Value::Kind::kLiteral, Text(), {}, {}};
    }
    Value variable{Value::Kind::kVariable, "", {Simple(depth - 1)}, {}};
    if (Below(3) == 0) {
      variable.children.push_back(Simple(depth - 1));
    }
    return variable;
  }

  Value Simple(int depth) {
    if (depth == 0 || Below(3) > 0) {
      return Operand(depth);
    }
    Value joined{Value::Kind::kConcatenation, "", {}, {}};
    for (int n = 2 + Below(3); n > 0; --n) {
      joined.children.push_back(Operand(depth - 1));
    }
    return joined;
  }

  std::vector<Value> Values(int depth) {
    std::vector<Value> values;
    for (int n = 1 + Below(4); n > 0; --n) {
      if (depth > 0 && Below(4) == 0) {
        values.push_back({Value::Kind::kSequence, "", Values(depth - 1), {}});
      } else {
        values.push_back(Simple(depth));
      }
    }
    return values;
  }

  Spec Boolean(int depth) {
    Spec spec;
    spec.kind = static_cast<Spec::Kind>(1 + Below(3));
    for (int n = 1 + Below(4); n > 0; --n) {
      if (depth > 0 && Below(3) == 0) {
        spec.children.push_back(Boolean(depth - 1));
      } else {
        spec.children.push_back(
            {Spec::Kind::kRelation, {Name(), static_cast<Operator>(Below(6)), Values(3)}, {}, {}});
      }
    }
    return spec;
  }

  std::mt19937 random_;
};

TEST(RslPrinter, ParseOfPrintIsTheTree) {
  const char* given = std::getenv("SEKISHO_SEED");
  const unsigned seed = given != nullptr ? std::atoi(given) : std::random_device()();
  SCOPED_TRACE("SEKISHO_SEED=" + std::to_string(seed));
  Generator generator(seed);

  for (int i = 0; i < 3000; ++i) {
    const Spec tree = generator.Request();
    const std::string printed = Print(tree);
    const std::string formatted = Format(tree);

    const Result<Spec> parsed = Parse(printed);
    const Result<Spec> reparsed = Parse(formatted);
    ASSERT_TRUE(parsed.ok()) << printed << "\n" << parsed.error().ToString();
    ASSERT_TRUE(reparsed.ok()) << formatted << "\n" << reparsed.error().ToString();
    ASSERT_TRUE(*parsed == tree) << printed;
    ASSERT_TRUE(*reparsed == tree) << formatted;
    ASSERT_EQ(Print(*parsed), printed);
    ASSERT_EQ(Format(*reparsed), formatted);
  }
}

TEST(RslPrinter, FormatsARelationALineInDocumentedSpelling) {
  EXPECT_EQ(
      Format(*Parse("&(EXECUTABLE=/bin/date)(maxwalltime=5)(rslSubstitution=(A \"b c\")(D $(A)/x))"
                    "(RESOURCEMANAGERCONTACT=s)(Other_One=1)")),
      "& (executable = /bin/date)\n"
      "  (max_wall_time = 5)\n"
      "  (rsl_substitution = (A \"b c\") (D $(A)#/x))\n"
      "  (resourceManagerContact = s)\n"
      "  (otherone = 1)\n");
  EXPECT_EQ(Format(*Parse("+(&(executable=a)(count=2))(&(executable=b))")),
            "+ (& (executable = a)\n"
            "     (count = 2))\n"
            "  (& (executable = b))\n");
}

TEST(RslPrinter, QuotesOnlyWhatMustBe) {
  EXPECT_EQ(PrintLiteral("a+b"), "a+b");
  EXPECT_EQ(PrintLiteral("+b"), "\"+b\"");
  EXPECT_EQ(PrintLiteral(""), "\"\"");
  EXPECT_EQ(PrintLiteral("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(PrintLiteral("関"), "\"関\"");
}

}  // namespace
}  // namespace sekisho::rsl
