// SPDX-License-Identifier: Apache-2.0
// One end of a stream that passes through this process: a socket, or a socket with TLS on it.
#pragma once

#include <cstddef>
#include <string>

#include <sys/types.h>

namespace sekisho::nxproxy::client {

class Channel {
 public:
  // Owns `fd`, which does not block.  Urgent bytes come in line.
  explicit Channel(int fd);
  virtual ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  int fd() const { return fd_; }

  // As recv and send.
  virtual ssize_t Read(char* bytes, size_t most);
  virtual ssize_t Write(const char* bytes, size_t count);
  // That no more will be written.  False: again, once it can be written.
  virtual bool End();
  // Bytes can be read though the socket may be silent.
  virtual bool has_more() const { return false; }

  void ResetAtClose();  // the far end sees that it was no proper end

 private:
  const int fd_;
};

}  // namespace sekisho::nxproxy::client
