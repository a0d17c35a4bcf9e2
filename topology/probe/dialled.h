// SPDX-License-Identifier: Apache-2.0
// A connection that a prober makes to another, without waiting for it.
#pragma once

#include <netinet/in.h>
#include <poll.h>

#include "topology/probe/orders.h"

namespace sekisho::topology {

// What is wanted of who is dialled: follows the key.
enum class Wanted : char { kEcho = 'p', kSink = 'f', kFile = 'b' };

class Dialled {
 public:
  Dialled() = default;
  ~Dialled() { Close(); }
  Dialled(const Dialled&) = delete;
  Dialled& operator=(const Dialled&) = delete;

  // False: it cannot even be tried.  Closes the one before.
  bool Dial(const ProbeTarget& target);
  // Once the socket is writable: shows the key.  False: nobody is there.
  bool Greet(const ProbeKey& key, Wanted wanted);
  bool Send(const void* bytes, size_t size);  // all of it, which must be little
  // Once it is connected: with somebody else than was dialled, by the kernel's own account.
  bool IsRelayed() const;

  int socket() const { return socket_; }
  void Close();

 private:
  int socket_ = -1;
  sockaddr_in dialled_{};
};

}  // namespace sekisho::topology
