// SPDX-License-Identifier: Apache-2.0
// Any bytes as a grid-mapfile: it parses or not, and what parses can be asked.
#include "common/identity/gridmap.h"

#include <cstdint>

#include "common/identity/dn.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using sekisho::identity::Gridmap;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Gridmap> map = Gridmap::Parse(text, "fuzz");
  const std::string normal = sekisho::identity::NormalizeDn(text);
  CHECK(sekisho::identity::NormalizeDn(normal) == normal);
  if (map.ok()) {
    (void)map->Lookup(text.substr(0, text.find('\n')));
    (void)map->Lookup("/C=JP/O=Grid/CN=Taro", "guest");
  }
  return 0;
}
