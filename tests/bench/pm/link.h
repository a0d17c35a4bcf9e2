// SPDX-License-Identifier: Apache-2.0
// Bytes between the ranks of a job, in order per pair: over PM or over TCP.  The layer above is the
// same for both.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace sekisho::pm_bench {

using Bytes = std::span<const unsigned char>;

enum class Waiting { kSpin, kSleep, kAdaptive };  // TCP knows no adaptive: it sleeps

class Link {
 public:
  using Sink = std::function<void(int source, Bytes piece)>;

  virtual ~Link() = default;
  // Takes what fits now of head and body together; how many bytes.
  virtual std::size_t Put(int to, Bytes head, Bytes body) = 0;
  // Hands out what has arrived; whether anything had.
  virtual bool Poll(const Sink& sink) = 0;
  // Until something has arrived or, if `blocked`, there may be room.
  virtual void Wait(bool blocked) = 0;
  // All that was put has left for good.
  virtual void Finish() = 0;
  // The whole job stops, `save` runs while nothing is under way; until Restart nothing is sent.
  virtual void Checkpoint(const std::function<void()>& save) = 0;
  virtual void Restart() = 0;

  int rank = 0;
  int size = 0;
};

struct LinkSettings {
  std::string job;  // file, as docs/operations/pm.md has it
  std::string daemon;
  int rank = 0;
  Waiting waiting = Waiting::kAdaptive;
};

std::unique_ptr<Link> OpenPm(const LinkSettings& settings);
std::unique_ptr<Link> OpenTcp(const LinkSettings& settings);

[[noreturn]] void Die(const std::string& what);

}  // namespace sekisho::pm_bench
