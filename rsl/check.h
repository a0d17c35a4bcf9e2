// SPDX-License-Identifier: Apache-2.0
// What can be said of a text of RSL away from the site that will run it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "rsl/job_description.h"

namespace sekisho::rsl {

struct CheckReport {
  std::optional<Error> error;
  // Good RSL that a site will refuse as not supported.
  std::vector<Error> warnings;
  // Does the text speak of a job: is an attribute known, or nearly so?  If not, only its grammar
  // can be checked.
  bool is_job = false;
  std::vector<JobDescription>
      jobs;  // one, or the parts of a multi-request; none if there is an error
};

enum class CheckDepth { kGrammar, kJob };

// With kJob also names, values and variables.  The site's variables are taken as defined.
CheckReport Check(std::string_view text, CheckDepth depth = CheckDepth::kJob);

}  // namespace sekisho::rsl
