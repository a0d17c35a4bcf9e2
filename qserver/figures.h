// SPDX-License-Identifier: Apache-2.0
// The queue server's figures: docs/operations/metrics.md.
#pragma once

#include <cstdint>

#include "common/metrics.h"
#include "qserver/conductor.h"
#include "qserver/inventory_watch.h"

namespace sekisho::qserver {

void AddFigures(Metrics& metrics, const Conductor& conductor, const InventoryWatch& inventory, uint64_t next_event);

}  // namespace sekisho::qserver
