// SPDX-License-Identifier: Apache-2.0
// The memory of a context.
#include "transport/pm/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstring>
#include <new>

#include "transport/pm/warm_pages.h"

namespace sekisho::pm {
namespace {

constexpr std::size_t kHeadSize = 4096;
constexpr std::size_t kMostInHugePages = 64 << 20;  // bytes of rings
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

static_assert(sizeof(SharedHead) <= kHeadSize);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

std::size_t PageUp(std::size_t size) { return (size + 4095) & ~std::size_t{4095}; }

std::error_code LastError() { return {errno, std::generic_category()}; }

// Of a memory that cannot become smaller under whoever maps it, and of small pages: of the others
// there may be none left, which kills who touches one.
std::error_code ReadSize(int memory, std::size_t& size) {
  struct stat status;
  struct statfs system;
  const int seals = fcntl(memory, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return Error::kBadConfig;
  if (fstatfs(memory, &system) != 0 || system.f_type != TMPFS_MAGIC) return Error::kBadConfig;
  if (fstat(memory, &status) != 0 || status.st_size < static_cast<off_t>(kHeadSize)) {
    return Error::kBadConfig;
  }
  size = static_cast<std::size_t>(status.st_size);
  return {};
}

}  // namespace

std::size_t SharedMemory::SizeFor(const Config& config) {
  const std::size_t area = Endpoint::AreaNeeded(config);
  if (area == 0) return 0;
  return kHeadSize + kAreas * PageUp(area) + PageUp(Endpoint::RingsNeeded(config)) +
         PageUp(sizeof(TraceRing));
}

std::error_code CheckHead(const SharedHead& head, std::size_t size, Config& config) {
  if (size < kHeadSize || Once(head.magic) != SharedHead::kMagic) return Error::kBadConfig;
  config = head.config;  // a copy: what is checked is what is used
  if (SharedMemory::SizeFor(config) != size) return Error::kBadConfig;
  return {};
}

SharedHeadView::~SharedHeadView() {
  if (head_ != nullptr) munmap(head_, kHeadSize);
}

std::error_code SharedHeadView::Map(int memory) {
  std::size_t size;
  if (const auto error = ReadSize(memory, size)) return error;
  void* const mapped = mmap(nullptr, kHeadSize, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (mapped == MAP_FAILED) return LastError();
  (void)madvise(mapped, kHeadSize, MADV_DONTFORK);
  head_ = static_cast<SharedHead*>(mapped);
  return {};
}

SharedMemory::~SharedMemory() {
  if (!mapping_.empty()) munmap(mapping_.data(), mapping_.size());
  if (fd_ >= 0) close(fd_);
}

MutableBytes SharedMemory::AreaBytes(std::uint32_t index) const {
  const std::size_t size = PageUp(Endpoint::AreaNeeded(config_));
  return mapping_.subspan(kHeadSize + index * size, size);
}

MutableBytes SharedMemory::RingBytes() const {
  return mapping_.subspan(kHeadSize + kAreas * PageUp(Endpoint::AreaNeeded(config_)),
                          PageUp(Endpoint::RingsNeeded(config_)));
}

MutableBytes SharedMemory::TraceBytes() const { return mapping_.last(PageUp(sizeof(TraceRing))); }

std::error_code SharedMemory::MapChecked(std::size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
  if (memory == MAP_FAILED) return LastError();
  mapping_ = {static_cast<std::uint8_t*>(memory), size};
  head_ = static_cast<SharedHead*>(memory);
  return {};
}

// If the administrator lets shared memory have them (shmem_enabled: advise).  Not the rings of
// many: of those that are used a little each would take a whole one.
void SharedMemory::AskForHugePages() {
  const MutableBytes rings = RingBytes();
  if (rings.size() <= kMostInHugePages) (void)madvise(rings.data(), rings.size(), MADV_HUGEPAGE);
}

std::error_code SharedMemory::Make(const Config& config, const Address& own, Nanos now) {
  const std::size_t size = SizeFor(config);
  if (size == 0) return Error::kBadConfig;
  fd_ = memfd_create("pm-context", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(size)) != 0) return LastError();
  if (fcntl(fd_, F_ADD_SEALS, kSeals) != 0) return LastError();
  if (const auto error = MapChecked(size)) return error;
  config_ = config;
  new (head_) SharedHead;
  head_->config = config;
  head_->own = own;
  AskForHugePages();
  trace_ = reinterpret_cast<TraceRing*>(TraceBytes().data());
  for (std::uint32_t i = 0; i < kAreas; ++i) {
    const auto error = i == 0 ? areas_[i].Init(config, AreaBytes(i), RingBytes(), nullptr, now)
                              : areas_[i].Attach(config, AreaBytes(i), RingBytes());
    if (error) return error;
  }
  return {};
}

std::error_code SharedMemory::Map(int fd) {
  fd_ = fd;
  std::size_t size;
  if (const auto error = ReadSize(fd, size)) return error;
  if (const auto error = MapChecked(size)) return error;
  if (const auto error = CheckHead(*head_, size, config_)) return error;
  AskForHugePages();
  trace_ = reinterpret_cast<TraceRing*>(TraceBytes().data());
  for (std::uint32_t i = 0; i < kAreas; ++i) {
    if (const auto error = areas_[i].Attach(config_, AreaBytes(i), RingBytes())) return error;
  }
  return {};
}

void SharedMemory::Warm(std::uint32_t area) {
  WarmPages(config_, AreaBytes(area % kAreas), RingBytes());
}

void SharedMemory::MindRings() {
  if (HasFewStreams(config_)) return;  // they may stay as they are
  for (Endpoint& area : areas_) {
    area.MindRings([](MutableBytes rings) {  // whole pages: 4 KiB and a power of two each
      (void)madvise(rings.data(), rings.size(), MADV_REMOVE);
    });
  }
}

void SharedMemory::ForgetTrace() {
  const MutableBytes trace = TraceBytes();
  (void)madvise(trace.data(), trace.size(), MADV_REMOVE);
}

void SharedMemory::Rebuild(std::uint32_t from, std::uint32_t to, Nanos now) {
  (void)areas_[to].Init(config_, AreaBytes(to), RingBytes(), nullptr, now);
  areas_[to].Rebuild(areas_[from]);
}

void SharedMemory::Restore(SharedMemory& saved, std::uint32_t from, std::uint32_t to, Nanos now) {
  const MutableBytes rings = RingBytes(), old = saved.RingBytes();
  constexpr std::size_t kPage = 4096;
  for (std::size_t at = 0; at + kPage <= rings.size(); at += kPage) {
    // Pages of zeros stay untouched.
    const MutableBytes page = old.subspan(at, kPage);
    const bool zero = page[0] == 0 && std::memcmp(page.data(), page.data() + 1, kPage - 1) == 0;
    const MutableBytes ours = rings.subspan(at, kPage);
    if (!zero || std::memcmp(ours.data(), page.data(), kPage) != 0) {
      std::memcpy(ours.data(), page.data(), kPage);
    }
  }
  (void)areas_[to].Init(config_, AreaBytes(to), rings, nullptr, now);
  areas_[to].Rebuild(saved.areas_[from]);
}

}  // namespace sekisho::pm
