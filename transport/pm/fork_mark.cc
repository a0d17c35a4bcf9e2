// SPDX-License-Identifier: Apache-2.0
// Tells a child of fork from the process that made the mark.
#include "transport/pm/fork_mark.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace sekisho::pm {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

ForkMark::ForkMark() : process_(getpid()) {
  void* const page =
      mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (madvise(page, kPage, MADV_WIPEONFORK) != 0) {
    munmap(page, kPage);
    return;
  }
  auto* const mark = static_cast<unsigned char*>(page);
  *mark = 1;
  page_ = mark;
}

ForkMark::~ForkMark() {
  if (page_ != nullptr) munmap(const_cast<unsigned char*>(page_), kPage);
}

bool ForkMark::IsOther() const { return getpid() != process_; }

}  // namespace sekisho::pm
