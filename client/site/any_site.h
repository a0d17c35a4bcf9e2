// SPDX-License-Identifier: Apache-2.0
// -r any: the site is chosen by what sites publish.  docs/protocol/16-directory.md, "Choosing a site".
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/site/session.h"
#include "glue/broker.h"
#include "rsl/job_description.h"

namespace sekisho::client {

inline constexpr char kAnySite[] = "any";

struct PlaceOptions {
  std::string resource;  // a site, a contact, or "any"
  std::string where;     // conditions on the site, for "any"
  bool says_why = false;
  bool is_quiet = false;
};

// Neither an option nor the request says where.
inline absl::Status NoPlace() {
  return absl::InvalidArgumentError("where? give -r and a site's name or contact, or -r any");
}

// "any" needs a directory.
absl::Status NoDirectory();

// No site can run it, or (`last`) the last that could refused.
absl::Status NobodyTakesIt(const glue::Choice& choice, const absl::Status& last = absl::OkStatus());

// Whom the user's credential speaks for, by its own word: sites will judge it.  Empty: there is none.
std::string OwnSubject();

// What one asks of a site.  `refusal` is set if nothing was submitted and the site said why: then another may
// be asked; else the exit code counts.
using Ask = std::function<awaitable<int>(Session&, absl::Status& refusal)>;

// At the site that is named; or at the best that takes it.  Errors are printed.
int WithPlace(const PlaceOptions& options, const std::vector<rsl::JobDescription>& jobs, const Ask& ask);

// After a submission that ended in `error` before it was accepted: is it certain that the site has no job?
bool IsRefusal(const absl::Status& error);

// What a job asks of a site.
glue::Demand DemandOf(const rsl::JobDescription& job, const std::string& subject);

}  // namespace sekisho::client
