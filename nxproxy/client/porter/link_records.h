// SPDX-License-Identifier: Apache-2.0
// Which ways a program's connections took, a line each, for who asks later: docs/protocol/11-nxproxy-shim.md,
// "Records of connections".
#pragma once

#include <set>
#include <string>

#include "nxproxy/client/porter/loop.h"
#include "nxproxy/wire/address.h"

namespace sekisho::nxproxy::client {

enum class TakenWay { kDirect, kReversed, kRelayed };

class LinkRecords {
 public:
  // Adds to the file `path`, which is there; "": keeps no records.  Programs connect to many at once, and each write
  // wakes who reads: what there is is written a moment later, the rest at the end.
  LinkRecords(Loop& loop, const std::string& path);
  ~LinkRecords();
  LinkRecords(const LinkRecords&) = delete;
  LinkRecords& operator=(const LinkRecords&) = delete;

  // "10.1.0.11:4000,[fd00::1]:4000": where others inside reach a listener of ours.
  void Listens(const std::string& addresses);
  void Connects(const wire::Address& destination, TakenWay way);

 private:
  void Add(const std::string& line);
  void Write();

  Loop& loop_;
  Loop::TimerId write_ = 0;
  std::string unwritten_;
  int fd_ = -1;
  std::set<std::string> said_;  // each line once
  size_t bytes_ = 0;
};

}  // namespace sekisho::nxproxy::client
