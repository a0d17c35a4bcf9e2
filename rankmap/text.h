// SPDX-License-Identifier: Apache-2.0
// Lines of numbers and words, with errors that name the place: what all our text formats share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace sekisho::rankmap {

class LineReader {
 public:
  // Both outlive the reader.  Comments run from `comment` to the end of the line ('\0': there are
  // none).
  LineReader(std::string_view text, std::string_view file, char comment = '#')
      : text_(text), file_(file), comment_(comment) {}

  // The words of the next line that has any; false at the end of the text.
  bool Next(std::vector<std::string_view>& words);

  int line() const { return line_; }
  // The last line read did not end: the file may have been cut.
  bool is_cut() const { return is_cut_; }
  absl::Status Error(std::string_view what) const;
  absl::Status CutOff() const { return Error("the last line does not end: the file is cut off"); }

  // A whole decimal number within [low, high]; `name` is for the message.
  absl::StatusOr<int64_t> Integer(std::string_view word, int64_t low, int64_t high,
                                  std::string_view name) const;
  absl::StatusOr<double> Positive(std::string_view word, std::string_view name) const;

 private:
  std::string_view text_;
  std::string_view file_;
  char comment_;
  size_t position_ = 0;
  int line_ = 0;
  bool is_cut_ = false;
};

// A word from a file as it may be shown: short and printable.
std::string Shown(std::string_view word);

}  // namespace sekisho::rankmap
