// SPDX-License-Identifier: Apache-2.0
// Attribute to field: the one place that knows which goes where.
#pragma once

#include "rsl/job_description.h"
#include "rsl/relation_reader.h"

namespace sekisho::rsl {

// Sets the field of `job` that belongs to `reader`'s attribute.
Failure SetField(const RelationReader& reader, JobDescription& job);

// May the attribute be given with other operators than "=", and once for each?
bool TakesOperators(const Attribute& attribute);

}  // namespace sekisho::rsl
