// SPDX-License-Identifier: Apache-2.0
// One line on the user's terminal that is written over while something lasts, and taken away at its end.  Nothing at all
// where standard error is no terminal.
#pragma once

#include <string>

namespace sekisho::client {

double MonotonicSeconds();

// "[##--------]".  Pure.
std::string Bar(double part_done, int width);

class TerminalLine {
 public:
  explicit TerminalLine(bool is_wanted);
  ~TerminalLine() { Close(); }
  TerminalLine(const TerminalLine&) = delete;
  TerminalLine& operator=(const TerminalLine&) = delete;

  // It is shown at all, and has stood for long enough to be read.
  bool IsDue() const;
  // What is printed by others meanwhile begins at the line's own beginning.
  void Show(const std::string& text);
  void Close();

  // Of the terminal.
  static int Columns();

 private:
  const bool is_shown_;
  bool is_open_ = false;
  double shown_at_ = 0;
};

}  // namespace sekisho::client
