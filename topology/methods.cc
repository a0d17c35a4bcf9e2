// SPDX-License-Identifier: Apache-2.0
#include "topology/methods.h"

#include "topology/errors.h"
#include "topology/fast.h"
#include "topology/paper.h"

namespace sekisho::topology {

absl::StatusOr<std::unique_ptr<Method>> MakeMethod(std::string_view name, int hosts,
                                                   const MethodOptions& options) {
  if (name == "fast") {
    return std::make_unique<FastMethod>(
        hosts, FastOptions{.site_hints = options.site_hints,
                           .seed = options.seed,
                           .most_at_once = options.most_at_once});
  }
  if (name == "paper") {
    return std::make_unique<PaperMethod>(hosts, options.seed);
  }
  return errors::UnknownMethod(name);
}

}  // namespace sekisho::topology
