// SPDX-License-Identifier: Apache-2.0
// One part of a world, as the command line knows it.
#pragma once

#include <string>

#include "client/job/staged_files.h"
#include "client/site/session.h"
#include "client/world/machine_file.h"

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
