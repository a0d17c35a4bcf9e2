// SPDX-License-Identifier: Apache-2.0
// Tells a child of fork from the process that made the mark, without a system call.  Linux.
#pragma once

#include <sys/types.h>

namespace sekisho::pm {

class ForkMark {
 public:
  ForkMark();
  ~ForkMark();
  ForkMark(const ForkMark&) = delete;
  ForkMark& operator=(const ForkMark&) = delete;

  bool is_forked() const { return page_ != nullptr ? *page_ == 0 : IsOther(); }

 private:
  bool IsOther() const;

  const volatile unsigned char* page_ = nullptr;  // which a child finds empty
  pid_t process_;                                 // where the kernel cannot do that
};

}  // namespace sekisho::pm
