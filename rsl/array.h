// SPDX-License-Identifier: Apache-2.0
// The indices of an array job: "1-1000%50", "1,3,10-20:2".  Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sekisho::rsl {

struct Array {
  struct Range {
    int first = 0;
    int last = 0;  // reached by `step` from `first`
    int step = 1;
  };
  std::vector<Range> ranges;  // ascending, apart from each other
  int at_once = 0;            // 0 = not limited
};

inline constexpr int kArrayElementsMost = 100'000;
inline constexpr int kArrayRangesMost = 1'000;
inline constexpr std::string_view kArrayExpected =
    "whole numbers and ranges, ascending, e.g. 1-1000%50 or 1,3,10-20:2, of at most 100000 elements";

std::optional<Array> ParseArray(std::string_view text);

// What $(SEKISHO_ARRAY_INDEX) stands for until an element starts: the text of an array is evaluated once.
inline constexpr std::string_view kArrayIndexMark = "\x01i\x01";
// The evaluated text of an array for one of its elements.
std::string ForElement(std::string text, int index);

}  // namespace sekisho::rsl
