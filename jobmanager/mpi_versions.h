// SPDX-License-Identifier: Apache-2.0
// Which MPI the parts of a world have loaded, as their ranks say: docs/protocol/15-mpirun.md,
// "Which MPI".  Pure.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace sekisho::jobmanager {

// "MPICH 4.0.2", of what a part gives to a collective; "" if no rank says so there.
std::string MpiVersionIn(std::string_view gift);

// "siteA MPICH 4.0.2, siteB MPICH 4.1"; "" if all of them, site and version, run the same.
std::string DifferentMpis(const std::set<std::pair<std::string, std::string>>& versions);

}  // namespace sekisho::jobmanager
