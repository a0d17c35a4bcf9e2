// SPDX-License-Identifier: Apache-2.0
// Any bytes give hosts, a tree and an oracle's answers, or errors; what is accepted survives printing.
#include <cstdint>
#include <string>

#include "topology/text_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sekisho::topology;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)ParseHosts(text, "fuzz");
  (void)ParseAnswer(text, Request{});
  if (const auto tree = ParseTree(text, "fuzz"); tree.ok()) {
    const std::string printed = PrintTree(tree->tree, tree->names);
    CHECK(ParseTree(printed, "printed").ok());
  }
  return 0;
}
