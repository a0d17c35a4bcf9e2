// SPDX-License-Identifier: Apache-2.0
// Runs a method with probers on real hosts: the counterpart of topology::RunVirtually.
#pragma once

#include "client/topology/topology_probers.h"
#include "topology/method.h"
#include "topology/run.h"

namespace sekisho::client {

// `most_at_once` as topology::Dispatcher has it.
topology::RunTotals RunLive(topology::Method& method, TopologyProbers& probers, int most_at_once);

}  // namespace sekisho::client
