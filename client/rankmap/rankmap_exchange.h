// SPDX-License-Identifier: Apache-2.0
// Searches that share a folder: each puts its best placement there and takes that of the others.  Who removes the
// folder ends all of them.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "common/status.h"

namespace sekisho::client {

class Exchange {
 public:
  // `island`: our number among them.
  Exchange(std::string folder, int island);

  int island() const { return island_; }
  // Somebody has removed the folder.
  bool IsOver() const;

  absl::Status Publish(std::string_view placement) const;
  // What others have published since we last looked.
  std::vector<std::string> News();

  void Remove() const;

 private:
  std::filesystem::path Own() const;

  std::filesystem::path folder_;
  int island_;
  std::map<std::string, std::filesystem::file_time_type> seen_;  // by name
};

}  // namespace sekisho::client
