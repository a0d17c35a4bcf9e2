// SPDX-License-Identifier: Apache-2.0
// The bar of files on their way, on the user's terminal; of several jobs at once it is one.
#pragma once

#include <optional>
#include <string>

#include "client/job/transfers.h"
#include "client/terminal_line.h"

namespace sekisho::client {

class TransferBar {
 public:
  explicit TransferBar(bool is_wanted) : line_(is_wanted) {}

  // As Transfers::Reach.  Shown once it lasts for more than a moment, until all that is known has arrived.
  void Reach(const std::string& file, uint64_t at, uint64_t size);
  void Hide() { line_.Close(); }  // until more comes

 private:
  Transfers transfers_;
  TerminalLine line_;
  std::optional<double> began_;
};

}  // namespace sekisho::client
