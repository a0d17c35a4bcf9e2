// SPDX-License-Identifier: Apache-2.0
// One end of a TLS 1.3 connection, blocking, with a certificate made up for the run: what a program pays that
// encrypts by itself, to compare with streams that the porters encrypt.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>

#include <openssl/ssl.h>

class SecureEnd {
 public:
  // Greets on `fd`, which it does not own; exits if that fails.
  SecureEnd(int fd, bool accepts);

  ssize_t Send(const char* bytes, size_t count) { return SSL_write(ssl_.get(), bytes, static_cast<int>(count)); }
  ssize_t Receive(char* bytes, size_t most) { return SSL_read(ssl_.get(), bytes, static_cast<int>(most)); }
  void Finish() { SSL_shutdown(ssl_.get()); }  // this direction

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  std::unique_ptr<SSL, Free> ssl_;
};
