// SPDX-License-Identifier: Apache-2.0
// Any line is an order or a prober's answer, or is refused; what is accepted survives printing.
#include <cstdint>

#include "common/status.h"
#include "topology/probe/orders.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sekisho::topology;
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  (void)ParseResult(line);
  if (const auto ready = ParseReady(line)) {
    const std::string printed = PrintReady(*ready);
    CHECK(ParseReady(std::string_view(printed).substr(0, printed.size() - 1)).has_value());
  }
  if (const auto order = ParseOrder(line); order && order->kind == ProbeOrder::Kind::kMeasure) {
    const std::string printed = PrintMeasureOrder(order->id, order->target, order->request);
    CHECK(ParseOrder(std::string_view(printed).substr(0, printed.size() - 1)).has_value());
  }
  return 0;
}
