// SPDX-License-Identifier: Apache-2.0
// What the ranks of a world write, each part's from its own site, as it comes.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client/site/session.h"
#include "client/world/tagged_output.h"
#include "client/world/world_part.h"

namespace sekisho::client {

class WorldOutput {
 public:
  // `parts` as their ranks are numbered now; `was_left`: nobody waits for it any more.
  WorldOutput(Loop& loop, const std::vector<WorldPart>& parts, const bool& was_left, bool tags)
      : parts_(parts), was_left_(was_left), tags_(tags), changed_(loop) {}

  using Reader = std::function<void(int rank, bool is_error, std::string_view data)>;
  // In place of the terminal.
  void set_reader(Reader reader) { reader_ = std::move(reader); }

  // Until the part has ended and all its output was written.  `self` keeps it alive meanwhile.
  static awaitable<void> Show(std::shared_ptr<WorldOutput> self, int part, std::string job_id);

  // Until all that is shown has been.  Once a site has been silent for so long its part is given up,
  // and that is said: a site that is out of reach does not tell that it has ended.
  awaitable<void> Wait(std::chrono::seconds silence_most);
  void Wake() { changed_.Notify(); }
  // Lines that have no end.
  void WriteRest();

 private:
  void Write(int part, const proto::OutputChunk& chunk, std::string_view data);

  const std::vector<WorldPart>& parts_;
  const bool& was_left_;
  const bool tags_;
  TaggedOutput tagged_;
  Reader reader_;
  Signal changed_;
  std::set<int> shown_;  // parts
  std::chrono::steady_clock::time_point written_ = {};
};

}  // namespace sekisho::client
