// SPDX-License-Identifier: Apache-2.0
// Every text format of rank placement: the first byte chooses which.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rankmap/importers.h"
#include "rankmap/network_format.h"
#include "rankmap/outputs.h"
#include "rankmap/pattern_format.h"
#include "rankmap/qaplib.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sekisho::rankmap;
  if (size == 0) {
    return 0;
  }
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 8) {
    case 0:
      if (const auto pattern = ParsePattern(text, "f"); pattern.ok()) {
        CHECK(ParsePattern(PrintPattern(*pattern), "f")->Hash() == pattern->Hash());
      }
      break;
    case 1:
      (void)ParsePlacement(text, "f");
      break;
    case 2:
      (void)ParseNetwork(text, "f");
      break;
    case 3:
      (void)ParseQap(text, "f");
      break;
    case 4:
      (void)ParseQapSolution(text, "f");
      break;
    case 5:
      (void)ParseScotchGraph(text, "f");
      break;
    case 6:
      (void)ParseMetisGraph(text, "f");
      break;
    default: {
      const NamedText file{"f.0.prof", std::string(text)};
      (void)ParseMonitoring({&file, 1});
      (void)ParseHosts(text, "f");
      break;
    }
  }
  return 0;
}
