// SPDX-License-Identifier: Apache-2.0
// One end of a stream that is encrypted end to end: docs/protocol/14-nxproxy-encryption.md.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nxproxy/client/porter/channel.h"
#include "nxproxy/client/porter/credential.h"
#include "nxproxy/client/porter/loop.h"

namespace sekisho::nxproxy::client {

inline constexpr char kAlpn[] = "\x0dnxproxy-e2e/1";  // with its length before it, as TLS has it
inline constexpr unsigned int kAlpnBytes = sizeof kAlpn - 1;
inline constexpr char kNotEncrypted[] =
    "the program there does not encrypt: start it with --encrypt (not-encrypted)";

class TlsStream : public Channel {
 public:
  TlsStream(int fd, SslPtr ssl);

  enum class Step { kDone, kRead, kWrite, kBroken };  // kRead, kWrite: wait until it can
  Step Handshake();
  // Why it is broken, in words; who says so first is right.
  const std::string& complaint() const { return complaint_; }
  void SetComplaint(const std::string& why);
  // Called at most once: the far end refused us after our own handshake was done.
  void OnRefused(std::function<void(const std::string& why)> on_refused) {
    on_refused_ = std::move(on_refused);
  }
  // Which names of our listeners the connector may mean; for who accepts.
  void SetNames(std::vector<std::string> names) { names_ = std::move(names); }
  bool HasName(const char* name) const;
  static TlsStream* Of(const SSL* ssl);

  ssize_t Read(char* bytes, size_t most) override;
  ssize_t Write(const char* bytes, size_t count) override;
  bool End() override;
  bool has_more() const override { return has_more_; }

 private:
  ssize_t Fail(int result);

  SslPtr ssl_;
  std::string complaint_;
  std::vector<std::string> names_;
  std::function<void(const std::string&)> on_refused_;
  bool has_heard_ = false;  // a byte of the far end's program
  bool has_more_ = true;    // as far as we know: not all was read
  uint64_t records_ = 0;  // under one key
};

// The handshake of a new stream, at most 10 s.
class Greeting {
 public:
  // nullptr and why: it failed.  May destroy us.
  using OnDone = std::function<void(std::unique_ptr<TlsStream>, const std::string& why)>;

  Greeting(Loop& loop, std::unique_ptr<TlsStream> stream, OnDone on_done);
  ~Greeting();
  Greeting(const Greeting&) = delete;
  Greeting& operator=(const Greeting&) = delete;

 private:
  void Move();
  void Done(std::string why);

  Loop& loop_;
  std::unique_ptr<TlsStream> stream_;
  const OnDone on_done_;
  Loop::TimerId limit_ = 0;
};

}  // namespace sekisho::nxproxy::client
