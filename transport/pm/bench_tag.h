// SPDX-License-Identifier: Apache-2.0
// What packets would cost without tags.  The library has no such switch: the bench is linked with a
// Tag of its own.
#pragma once

namespace sekisho::pm {

// As long as it lives, packets of this process, and of those it forks meanwhile, have tags or none.
class Tagged {
 public:
  explicit Tagged(bool tags);
  ~Tagged();
  Tagged(const Tagged&) = delete;
  Tagged& operator=(const Tagged&) = delete;

 private:
  const bool before_;
};

}  // namespace sekisho::pm
