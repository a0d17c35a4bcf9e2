// SPDX-License-Identifier: Apache-2.0
// Conditions on what sites offer, as users write them:
//   freeslots >= 8 && arch == amd64 && (out || !in)
// docs/operations/cli.md, "Sites".  Pure.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/status.h"
#include "glue/facts.h"

namespace sekisho::glue {

class Where {
 public:
  // InvalidArgument "COLUMN: what was expected, what was seen".
  static absl::StatusOr<Where> Parse(std::string_view text);

  // What is not said meets no comparison.
  bool Holds(const Facts& facts) const;

  // The innermost condition that does not hold, "freeslots >= 8 (is 4)"; empty if all do.
  std::string WhyNot(const Facts& facts) const;

  bool IsEmpty() const { return root_ == nullptr; }

  Where();  // no condition
  ~Where();
  Where(Where&&) noexcept;
  Where& operator=(Where&&) noexcept;

 private:
  struct Node;
  friend class WhereParser;
  std::unique_ptr<Node> root_;
};

}  // namespace sekisho::glue
