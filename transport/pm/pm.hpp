// SPDX-License-Identifier: Apache-2.0
// PM for C++20: owners for what pm.h gives, errors as std::error_code of errno values, no
// exceptions. What a call means stands in pm.h and pm(3).  A context outlives all that came from
// it.
#ifndef SEKISHO_PM_HPP_
#define SEKISHO_PM_HPP_

#include <chrono>
#include <cstddef>
#include <span>
#include <system_error>
#include <utility>

#include "pm.h"

namespace pm {

inline std::error_code Error(int number) { return {number, std::generic_category()}; }

// ENOBUFS and EBUSY: go on receiving, and try again.
inline bool IsLater(const std::error_code& error) {
  return error == std::errc::no_buffer_space || error == std::errc::device_or_resource_busy;
}

// A number of a context that is given back once.
template <int (*kRelease)(pmContext*, int)>
class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(pmContext* context, int number) : context_(context), number_(number) {}
  Descriptor(Descriptor&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)), number_(other.number_) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this == &other) return *this;
    Reset();
    context_ = std::exchange(other.context_, nullptr);
    number_ = other.number_;
    return *this;
  }
  ~Descriptor() { Reset(); }

  void Reset() {
    if (context_ != nullptr) (void)kRelease(context_, number_);
    context_ = nullptr;
  }
  explicit operator bool() const { return context_ != nullptr; }
  pmContext* context() const { return context_; }
  int number() const { return number_; }

 private:
  pmContext* context_ = nullptr;
  int number_ = -1;
};

// Something that was sent or started; destroyed, it goes on unwatched.
class Pending {
 public:
  Pending() = default;
  explicit Pending(Descriptor<pmxReleaseSendDesc> descriptor)
      : descriptor_(std::move(descriptor)) {}

  // None: done.  EBUSY: not yet.
  std::error_code State() const {
    return Error(pmxIsSendDone(descriptor_.context(), descriptor_.number()));
  }
  explicit operator bool() const { return static_cast<bool>(descriptor_); }

 private:
  Descriptor<pmxReleaseSendDesc> descriptor_;
};

// Room for a message; destroyed without Send, nothing is sent.
class SendBuffer {
 public:
  SendBuffer() = default;

  std::span<std::byte> bytes() const { return bytes_; }
  std::error_code Truncate(std::size_t length) {
    const int error = pmxTruncateBuffer(descriptor_.context(), descriptor_.number(), length);
    if (error == 0) bytes_ = bytes_.first(length);
    return Error(error);
  }
  // ENOBUFS: it is as before.
  std::error_code Send(Pending* pending = nullptr) {
    const auto error = Error(pmxSend(descriptor_.context(), descriptor_.number()));
    if (error == std::errc::no_buffer_space) return error;
    if (pending != nullptr && !error) {
      *pending = Pending(std::move(descriptor_));
    } else {
      descriptor_.Reset();
    }
    bytes_ = {};
    return error;
  }
  explicit operator bool() const { return static_cast<bool>(descriptor_); }

 private:
  friend class Context;
  Descriptor<pmxReleaseSendDesc> descriptor_;
  std::span<std::byte> bytes_;
};

// A message where it arrived; its ring gets the place back when this is destroyed.
class Received {
 public:
  Received() = default;

  std::span<std::byte> bytes() const { return bytes_; }
  int source() const { return source_; }
  explicit operator bool() const { return static_cast<bool>(descriptor_); }

 private:
  friend class Context;
  Descriptor<pmxReleaseReceiveBuffer> descriptor_;
  std::span<std::byte> bytes_;
  int source_ = -1;
};

// Memory that a node may use.  Destroyed, it waits for operations of our own on it.
class Region {
 public:
  Region() = default;
  Region(Region&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)), handle_(other.handle_) {}
  Region& operator=(Region&& other) noexcept {
    if (this == &other) return *this;
    Reset();
    context_ = std::exchange(other.context_, nullptr);
    handle_ = other.handle_;
    return *this;
  }
  ~Region() { Reset(); }

  void Reset() {
    while (context_ != nullptr && IsLater(Error(pmMUnlock(context_, &handle_)))) {
      (void)pmWait(context_, 1000);
    }
    context_ = nullptr;
  }
  const pmHandle& handle() const { return handle_; }

 private:
  friend class Context;
  pmContext* context_ = nullptr;
  pmHandle handle_{};
};

class Context {
 public:
  Context() = default;
  Context(Context&& other) noexcept : context_(std::exchange(other.context_, nullptr)) {}
  Context& operator=(Context&& other) noexcept {
    if (this == &other) return *this;
    Close();
    context_ = std::exchange(other.context_, nullptr);
    return *this;
  }
  ~Context() { Close(); }

  std::error_code Open(int argc = 0, char** argv = nullptr) {
    Close();
    return Error(pmOpenDevice("udp", argc, argv, &context_));
  }
  std::error_code Attach(int descriptor) {
    Close();
    return Error(pmAttachContext("udp", descriptor, &context_));
  }
  std::error_code Detach(int& descriptor) {
    const int error = pmDetachContext(context_, &descriptor);
    if (error == 0) context_ = nullptr;
    return Error(error);
  }
  void Close() {
    if (context_ != nullptr) (void)pmCloseDevice(context_);
    context_ = nullptr;
  }

  int node() const { return Numbers().first; }
  int nodes() const { return Numbers().second; }

  std::error_code GetSendBuffer(int node, std::size_t length, SendBuffer& out) {
    void* buffer;
    int number;
    const int error = pmxGetSendBuffer(context_, node, &buffer, length, &number);
    if (error != 0) return Error(error);
    out.descriptor_ = {context_, number};
    out.bytes_ = {static_cast<std::byte*>(buffer), length};
    return {};
  }
  std::error_code Receive(Received& out) {
    void* buffer;
    std::size_t length;
    int number;
    const int error = pmxReceive(context_, &buffer, &length, &number);
    if (error != 0) return Error(error);
    out.descriptor_ = {context_, number};
    out.bytes_ = {static_cast<std::byte*>(buffer), length};
    return Error(pmxGetSource(context_, number, &out.source_));
  }
  // ETIMEDOUT.
  std::error_code Wait(std::chrono::microseconds time) {
    return Error(pmWait(context_, static_cast<long>(time.count())));
  }
  std::error_code IsSendDone() { return Error(pmIsSendDone(context_)); }

  // `node`: who may use it; -1: every node.
  std::error_code Register(int node, std::span<std::byte> memory, Region& out) {
    pmHandle handle;
    const int error = pmMLock(context_, node, memory.data(), memory.size(), &handle);
    if (error != 0) return Error(error);
    out.Reset();
    out.context_ = context_;
    out.handle_ = handle;
    return {};
  }
  std::error_code Write(int node, const pmHandle& remote, const pmHandle& local, std::size_t length,
                        Pending& out) {
    return Start(pmxWrite, node, remote, local, length, out);
  }
  std::error_code Read(int node, const pmHandle& remote, const pmHandle& local, std::size_t length,
                       Pending& out) {
    return Start(pmxRead, node, remote, local, length, out);
  }

  explicit operator bool() const { return context_ != nullptr; }
  pmContext* get() const { return context_; }

 private:
  std::pair<int, int> Numbers() const {
    int node = -1, nodes = 0;
    (void)pmGetNode(context_, &node, &nodes);
    return {node, nodes};
  }
  std::error_code Start(decltype(pmxWrite)* start, int node, const pmHandle& remote,
                        const pmHandle& local, std::size_t length, Pending& out) {
    int number;
    const int error = start(context_, node, &remote, &local, length, &number);
    if (error == 0) out = Pending({context_, number});
    return Error(error);
  }

  pmContext* context_ = nullptr;
};

// A part of a region, of this or another node.
inline std::error_code SubHandle(const pmHandle& whole, std::size_t offset, std::size_t length,
                                 pmHandle& part) {
  return Error(pmSubHandle(&whole, offset, length, &part));
}

}  // namespace pm

#endif  // SEKISHO_PM_HPP_
