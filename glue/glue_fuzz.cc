// SPDX-License-Identifier: Apache-2.0
// Names, conditions and entries of strangers: the first byte chooses.
#include "common/status.h"
#include "glue/broker.h"

using namespace sekisho::glue;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 3 == 0) {
    if (const auto names = ParseDn(text)) {
      CHECK(ParseDn(ToDn(*names)) == names);
    }
    return 0;
  }
  if (data[0] % 3 == 1) {
    if (const auto where = Where::Parse(text); where.ok()) {
      where->Holds(FactsOf({}, {}, 0));
    }
    return 0;
  }
  // Lines: an empty one begins an entry, the next is its name, others are ATTRIBUTE=value.
  std::vector<Entry> entries;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.empty() || entries.empty()) {
      entries.emplace_back();
    }
    if (entries.back().dn.empty()) {
      entries.back().dn = line;
    } else if (const size_t equals = line.find('='); equals != std::string::npos) {
      entries.back().attributes[line.substr(0, equals)].push_back(line.substr(equals + 1));
    }
  }
  Explain(Choose(ReadOffers(entries), {}, Where(), 0));
  return 0;
}
