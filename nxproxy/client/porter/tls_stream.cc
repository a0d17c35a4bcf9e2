// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/tls_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <openssl/err.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace sekisho::nxproxy::client {
namespace {

constexpr int64_t kGreetingMs = 10'000;
constexpr size_t kRecordBytes = 16 * 1024;
constexpr uint64_t kRecordsOfAKey = 1 << 23;

// What TLS's error means for a user: docs/protocol/14-nxproxy-encryption.md, "Errors".
std::string WordsOf(unsigned long code) {
  switch (ERR_GET_REASON(code)) {
    case 0:
    case SSL_R_UNEXPECTED_EOF_WHILE_READING:
      return "the far end closed the connection";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
      return "the far end does not take us for its own user or job (not-yours)";
    case SSL_R_TLSV1_UNRECOGNIZED_NAME:
      return "the relay led to another listener than the one that was meant (unrecognized-name)";
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_UNEXPECTED_MESSAGE:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_BAD_RECORD_TYPE:
    case SSL_R_UNKNOWN_PROTOCOL:
    case SSL_R_NO_APPLICATION_PROTOCOL:
      return kNotEncrypted;
    default: {
      const char* reason = ERR_reason_error_string(code);
      return std::string("TLS: ") + (reason != nullptr ? reason : "unknown error");
    }
  }
}

}  // namespace

TlsStream::TlsStream(int fd, SslPtr ssl) : Channel(fd), ssl_(std::move(ssl)) {
  SSL_set_fd(ssl_.get(), fd);
  SSL_set_app_data(ssl_.get(), this);
}

TlsStream* TlsStream::Of(const SSL* ssl) {
  return static_cast<TlsStream*>(SSL_get_app_data(ssl));
}

bool TlsStream::HasName(const char* name) const {
  return name != nullptr && std::find(names_.begin(), names_.end(), name) != names_.end();
}

TlsStream::Step TlsStream::Handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) {
    const unsigned char* chosen = nullptr;
    unsigned int length = 0;
    SSL_get0_alpn_selected(ssl_.get(), &chosen, &length);
    const bool is_ours =
        length == kAlpnBytes - 1 && std::memcmp(chosen, kAlpn + 1, length) == 0;
    if (!is_ours) {
      SetComplaint(kNotEncrypted);
    }
    return is_ours ? Step::kDone : Step::kBroken;
  }
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return Step::kRead;
    case SSL_ERROR_WANT_WRITE:
      return Step::kWrite;
    default:
      SetComplaint(WordsOf(ERR_peek_error()));
      return Step::kBroken;
  }
}

void TlsStream::SetComplaint(const std::string& why) {
  if (complaint_.empty()) {
    complaint_ = why;
  }
}

// A stream that was cut, changed or replayed on its way is a reset: only close_notify is an end.
ssize_t TlsStream::Fail(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_ZERO_RETURN:
      return 0;
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      errno = EAGAIN;
      return -1;
    default:
      // Its judgement of us may come after we took the handshake for done.
      if (!has_heard_ && on_refused_) {
        SetComplaint(WordsOf(ERR_peek_error()));
        std::exchange(on_refused_, nullptr)(complaint_);
      }
      errno = ECONNRESET;
      return -1;
  }
}

// As many records as are there: each costs a call.
ssize_t TlsStream::Read(char* bytes, size_t most) {
  size_t total = 0;
  has_more_ = false;
  while (total < most) {
    ERR_clear_error();
    const int got = SSL_read(ssl_.get(), bytes + total, static_cast<int>(most - total));
    if (got <= 0) {
      if (total == 0) {
        return Fail(got);
      }
      // What came before an end, or before a break, is genuine; the next call tells of that.
      const int error = SSL_get_error(ssl_.get(), got);
      has_more_ = error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE;
      return static_cast<ssize_t>(total);
    }
    has_heard_ = true;
    total += static_cast<size_t>(got);
  }
  has_more_ = true;
  return static_cast<ssize_t>(total);
}

ssize_t TlsStream::Write(const char* bytes, size_t count) {
  if (records_ >= kRecordsOfAKey) {
    records_ = 0;
    SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
  }
  ERR_clear_error();
  const int sent =
      SSL_write(ssl_.get(), bytes, static_cast<int>(std::min(count, size_t{1} << 30)));
  if (sent <= 0) {
    return Fail(sent) == 0 ? (errno = EPIPE, -1) : -1;
  }
  records_ += (static_cast<size_t>(sent) + kRecordBytes - 1) / kRecordBytes;
  return sent;
}

bool TlsStream::End() {
  ERR_clear_error();
  const int result = SSL_shutdown(ssl_.get());
  if (result < 0 && SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_WRITE) {
    return false;
  }
  ERR_clear_error();
  shutdown(fd(), SHUT_WR);
  return true;
}

Greeting::Greeting(Loop& loop, std::unique_ptr<TlsStream> stream, OnDone on_done)
    : loop_(loop), stream_(std::move(stream)), on_done_(std::move(on_done)) {
  limit_ = loop_.After(kGreetingMs, [this] { Done("the far end did not greet within 10 s"); });
  loop_.Watch(stream_->fd(), EPOLLIN | EPOLLOUT, [this](uint32_t) { Move(); });
}

Greeting::~Greeting() {
  loop_.Cancel(limit_);
  if (stream_ != nullptr) {
    loop_.Forget(stream_->fd());
  }
}

void Greeting::Move() {
  switch (stream_->Handshake()) {
    case TlsStream::Step::kRead:
      loop_.Change(stream_->fd(), EPOLLIN);
      return;
    case TlsStream::Step::kWrite:
      loop_.Change(stream_->fd(), EPOLLIN | EPOLLOUT);
      return;
    case TlsStream::Step::kDone:
      Done("");
      return;
    case TlsStream::Step::kBroken:
      Done(stream_->complaint());
      return;
  }
}

void Greeting::Done(std::string why) {
  loop_.Cancel(limit_);
  loop_.Forget(stream_->fd());
  const OnDone on_done = on_done_;
  auto stream = std::move(stream_);
  if (!why.empty()) {
    stream.reset();  // no reset of the connection: that would overtake the alert
  }
  on_done(std::move(stream), why);
}

}  // namespace sekisho::nxproxy::client
