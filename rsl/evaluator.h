// SPDX-License-Identifier: Apache-2.0
// Variables and concatenations to plain text: docs/protocol/1-rsl.md, "Evaluation".
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "rsl/ast.h"
#include "rsl/error.h"

namespace sekisho::rsl {

using Variables = std::map<std::string, std::string, std::less<>>;

// All text that evaluation makes, in bytes: a substitution that doubles itself ends here.
inline constexpr size_t kEvaluatedSizeMax = 1 << 20;

// The tree with every variable and concatenation replaced by a literal.  `variables` are the
// outermost scope.  An undefined variable is error 39 and names it.  Print() of the result is a text
// that Parse() takes.
Result<Spec> Evaluate(const Spec& spec, const Variables& variables);

// GLOBUSRUN_GASS_URL: what is behind it is a file of the client's.
inline constexpr char kClientUrl[] = "client://";

// What a site defines for a job, by name (HOME, LOGNAME, GLOBUS_ID, ...).
std::span<const std::string_view> SiteVariableNames();

// For a check outside the site: every site variable stands for itself, HOME is "$(HOME)"; but
// GLOBUSRUN_GASS_URL is the same everywhere.
Variables UnknownSiteVariables();

}  // namespace sekisho::rsl
