// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/mpi_versions.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace sekisho::jobmanager {
namespace {

constexpr std::string_view kKey = "sekisho-mpi-";

// "MPICH Version:  4.0.2", "Open MPI v4.1.4, package: Debian OpenMPI, ident: ..."
std::string NameIn(std::string_view version) {
  std::istringstream words(std::string(version.substr(0, version.find(','))));
  std::vector<std::string> kept;
  for (std::string word; words >> word;) {
    if (word != "Version" && word != "Version:" && word != ":") {
      kept.push_back(word);
    }
  }
  return fmt::format("{}", fmt::join(kept, " "));
}

}  // namespace

std::string MpiVersionIn(std::string_view gift) {
  while (!gift.empty()) {
    const std::string_view line = gift.substr(0, gift.find('\n'));
    const size_t equals = line.find('=');
    if (line.starts_with(kKey) && equals != std::string_view::npos) {
      return NameIn(line.substr(equals + 1));
    }
    gift.remove_prefix(std::min(line.size() + 1, gift.size()));
  }
  return "";
}

std::string DifferentMpis(const std::set<std::pair<std::string, std::string>>& versions) {
  std::set<std::string> different;
  std::vector<std::string> names;
  for (const auto& [site, version] : versions) {
    different.insert(version);
    names.push_back(site + " " + version);
  }
  return different.size() > 1 ? fmt::format("{}", fmt::join(names, ", ")) : "";
}

}  // namespace sekisho::jobmanager
