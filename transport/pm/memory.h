// SPDX-License-Identifier: Apache-2.0
// Memory that is fixed at set-up: an arena that is first measured and then cut, pools and lists of
// indices in it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

#include "transport/pm/types.h"

namespace sekisho::pm {

// Called when memory that is shared with another process proves to be spoiled.  Does not return;
// abort() unless set.  The daemon's keeper leaves, tests jump.
using SpoiledHandler = void (*)();
void SetSpoiledHandler(SpoiledHandler handler);
[[noreturn, gnu::cold]] void Spoiled();

// The value, read once: another process may change the memory it came from between a check and the
// use, and the compiler must not read it again.
template <typename T>
inline T Once(T value) {
  asm("" : "+r"(value));
  return value;
}

// What was written before is in memory before what is written after, whenever we are killed.
inline void Publish() { std::atomic_signal_fence(std::memory_order_seq_cst); }

// An array in memory that another process may write, too: every index is checked.
template <typename T>
class Items {
 public:
  Items() = default;
  Items(std::span<T> items) : data_(items.data()), size_(items.size()) {}

  T& operator[](std::size_t index) const {
    index = Once(index);
    if (index >= size_) Spoiled();
    return data_[index];
  }
  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }
  std::span<T> part(std::size_t first, std::size_t count) const { return {data_ + first, count}; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

// Without memory it only measures: the same cutting code runs several times.
class Arena {
 public:
  enum class Mode { kMake, kAttach };  // attached: another process made it

  explicit Arena(MutableBytes memory, Mode mode = Mode::kMake) : memory_(memory), mode_(mode) {}

  template <typename T>
  std::span<T> Take(std::size_t count) {
    const std::span<T> taken = Reserve<T>(count);
    if (mode_ == Mode::kMake) {
      std::uninitialized_value_construct_n(taken.data(), taken.size());
    }
    return taken;
  }

  // Not touched, and not initialised: costs no page until somebody uses it.
  template <typename T>
  std::span<T> Reserve(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    used_ = (used_ + 63) & ~std::size_t{63};
    const std::size_t at = used_;
    used_ += count * sizeof(T);
    if (memory_.empty() || used_ > memory_.size()) return {};
    return {reinterpret_cast<T*>(memory_.data() + at), count};
  }

  std::size_t used() const { return (used_ + 63) & ~std::size_t{63}; }
  bool fits() const { return used_ <= memory_.size(); }

 private:
  MutableBytes memory_;
  Mode mode_;
  std::size_t used_ = 0;
};

struct PoolHead {
  std::uint32_t free = kNil;
  std::uint32_t free_count = 0;
  std::uint32_t made = 0;  // those from here on were never used
};

// T has a field `next`, which links the free ones.  What was never used is not touched.
template <typename T>
class Pool {
 public:
  void Attach(Items<T> items, PoolHead& head) {
    items_ = items;
    head_ = &head;
  }

  void Init(Items<T> items, PoolHead& head) {
    Attach(items, head);
    head = {};
    head.free_count = size();
  }

  // kNil when none is left.
  std::uint32_t Get() {
    std::uint32_t index = Once(head_->free);
    if (index != kNil) {
      head_->free = items_[index].next;
    } else {
      index = Once(head_->made);
      if (index >= size()) return kNil;
      items_[index] = T();
      head_->made = index + 1;
    }
    --head_->free_count;
    return index;
  }

  void Put(std::uint32_t index) {
    items_[index].next = head_->free;
    head_->free = index;
    ++head_->free_count;
  }

  T& operator[](std::uint32_t index) { return items_[index]; }
  const T& operator[](std::uint32_t index) const { return items_[index]; }
  std::uint32_t free_count() const { return head_->free_count; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(items_.size()); }

 private:
  Items<T> items_;
  PoolHead* head_ = nullptr;
};

// Doubly linked through two members of T; an element is in at most one list per pair of members.
template <typename T, std::uint32_t T::*kNext, std::uint32_t T::*kPrevious>
struct List {
  std::uint32_t first = kNil;
  std::uint32_t last = kNil;

  bool empty() const { return first == kNil; }

  template <typename Items>
  void PushBack(Items& items, std::uint32_t index) {
    items[index].*kNext = kNil;
    items[index].*kPrevious = last;
    (last == kNil ? first : items[last].*kNext) = index;
    last = index;
  }

  template <typename Items>
  void PushFront(Items& items, std::uint32_t index) {
    items[index].*kPrevious = kNil;
    items[index].*kNext = first;
    (first == kNil ? last : items[first].*kPrevious) = index;
    first = index;
  }

  template <typename Items>
  void Remove(Items& items, std::uint32_t index) {
    const std::uint32_t next = items[index].*kNext;
    const std::uint32_t previous = items[index].*kPrevious;
    (previous == kNil ? first : items[previous].*kNext) = next;
    (next == kNil ? last : items[next].*kPrevious) = previous;
  }
};

// The earliest of one deadline per peer: a binary heap with positions.
class DeadlineHeap {
 public:
  void Attach(Items<std::uint32_t> heap, Items<std::uint32_t> position, Items<Nanos> deadline,
              std::uint32_t& size) {
    heap_ = heap, position_ = position, deadline_ = deadline, size_ = &size;
  }

  void Init() {
    *size_ = 0;
    for (std::uint32_t& at : position_) at = kNil;
  }

  Nanos earliest() const { return *size_ == 0 ? kNever : deadline_[heap_[0]]; }
  std::uint32_t first() const { return heap_[0]; }

  // kNever removes.
  void Set(std::uint32_t id, Nanos when) {
    std::uint32_t at = position_[id];
    if (when == kNever) {
      if (at == kNil) return;
      position_[id] = kNil;
      const std::uint32_t moved = heap_[--*size_];
      if (moved == id) return;
      Place(moved, at);
      Down(Up(at));
      return;
    }
    deadline_[id] = when;
    if (at == kNil) Place(id, at = (*size_)++);
    Down(Up(at));
  }

 private:
  void Place(std::uint32_t id, std::uint32_t at) {
    heap_[at] = id;
    position_[id] = at;
  }

  void Swap(std::uint32_t a, std::uint32_t b) {
    const std::uint32_t id = heap_[a];
    Place(heap_[b], a);
    Place(id, b);
  }

  std::uint32_t Up(std::uint32_t at) {
    while (at > 0 && deadline_[heap_[at]] < deadline_[heap_[(at - 1) / 2]]) {
      Swap(at, (at - 1) / 2);
      at = (at - 1) / 2;
    }
    return at;
  }

  void Down(std::uint32_t at) {
    for (;;) {
      std::uint32_t least = at;
      for (const std::uint32_t child : {2 * at + 1, 2 * at + 2}) {
        if (child < *size_ && deadline_[heap_[child]] < deadline_[heap_[least]]) least = child;
      }
      if (least == at) return;
      Swap(at, least);
      at = least;
    }
  }

  Items<std::uint32_t> heap_, position_;
  Items<Nanos> deadline_;
  std::uint32_t* size_ = nullptr;
};

}  // namespace sekisho::pm
