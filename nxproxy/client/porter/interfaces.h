// SPDX-License-Identifier: Apache-2.0
// This host's own addresses and the networks that it is attached to.
#pragma once

#include <string>
#include <vector>

#include "nxproxy/wire/address.h"

namespace sekisho::nxproxy::client {

struct Interface {
  wire::Address address;  // port 0
  int prefix_bits = 128;  // of the mapped address
};

class Interfaces {
 public:
  explicit Interfaces(std::vector<Interface> all) : all_(std::move(all)) {}

  // As they were a second ago at most, for the porter's one thread: a program that connects to many peers asks for each.
  // Without loopback and link-local.
  static const Interfaces& Read();

  bool IsOwn(const wire::Address& address) const;
  bool IsAttached(const wire::Address& address) const;  // of a network that an interface is on

  // "10.1.0.11:80,[fd00::1]:80": where peers inside reach a listener bound to `local`.
  std::string InsideText(const wire::Address& local, bool takes_v4, bool takes_v6) const;
  wire::Address Main() const;  // the first; unset if there is none

 private:
  std::vector<Interface> all_;
};

}  // namespace sekisho::nxproxy::client
