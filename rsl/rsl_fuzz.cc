// SPDX-License-Identifier: Apache-2.0
// Any bytes through lexer, parser, evaluator and job description; what parses must survive its
// printing.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rsl/check.h"
#include "rsl/parser.h"
#include "rsl/printer.h"

namespace rsl = sekisho::rsl;

namespace {

void CheckRoundTrip(const rsl::Spec& spec) {
  const rsl::Result<rsl::Spec> printed = rsl::Parse(rsl::Print(spec));
  CHECK(printed.ok() && *printed == spec);
  const rsl::Result<rsl::Spec> formatted = rsl::Parse(rsl::Format(spec));
  CHECK(formatted.ok() && *formatted == spec);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const rsl::Variables variables = {{"HOME", "/home/alice"}, {"LOGNAME", "alice"}};

  const rsl::Result<rsl::Spec> spec = rsl::Parse(text);
  const rsl::CheckReport report = rsl::Check(text);
  if (!spec.ok()) {
    CHECK(report.error && !report.error->ToString().empty());
    return 0;
  }
  CheckRoundTrip(*spec);
  if (const rsl::Result<rsl::Spec> evaluated = rsl::Evaluate(*spec, variables); evaluated.ok()) {
    CheckRoundTrip(*evaluated);
  }
  (void)rsl::ParseAndDescribe(text, variables, rsl::Use::kStdioUpdate);

  // A part that stands alone means what it meant among the others.
  const rsl::Result<std::vector<rsl::JobDescription>> parts =
      rsl::ParseAndDescribeParts(text, variables);
  const rsl::Result<std::vector<rsl::Spec>> split = rsl::SplitParts(*spec);
  if (parts.ok() && spec->kind == rsl::Spec::Kind::kMultiRequest) {
    CHECK(split.ok() && split->size() == parts->size());
    for (const rsl::Spec& part : *split) {
      CheckRoundTrip(part);
      CHECK(rsl::Evaluate(part, variables).ok());
    }
  }
  return 0;
}
