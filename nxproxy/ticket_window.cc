// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/ticket_window.h"

namespace sekisho::nxproxy {

bool TicketWindow::Use(uint64_t counter) {
  if (counter > highest_) {
    if (counter - highest_ >= kWidth) {
      used_.reset();
    } else {
      for (uint64_t between = highest_ + 1; between <= counter; ++between) {
        used_.reset(between % kWidth);
      }
    }
    highest_ = counter;
  } else if (counter == 0 || highest_ - counter >= kWidth || used_.test(counter % kWidth)) {
    return false;
  }
  used_.set(counter % kWidth);
  return true;
}

}  // namespace sekisho::nxproxy
