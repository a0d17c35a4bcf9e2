// SPDX-License-Identifier: Apache-2.0
// One part of a world, as the command line knows it.
#pragma once

#include <string>

#include "client/machine_file.h"
#include "client/session.h"
#include "client/staged_files.h"

namespace sekisho::client {

struct WorldPart {
  RankRange ranks;
  Session* session = nullptr;  // of its site; parts of one site share it
  std::string site;
  std::string rsl;
  ClientFiles files;  // that it brings along
  proto::Charter::StartType start = proto::Charter::STRICT_BARRIER;
};

}  // namespace sekisho::client
