// SPDX-License-Identifier: Apache-2.0
// The world's part about what fails, is late or is lost: the end of all, or of one part, by its
// start type.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "jobmanager/world.h"

namespace sekisho::jobmanager {

World::Effects World::Abort(const std::string& reason, const std::string& remedy) {
  Effects effects;
  proto::WorldEnded end;
  end.set_state(proto::FAILED);
  end.set_reason(reason);
  end.set_remedy(remedy);
  Fail(std::move(end), -1, effects);
  return effects;
}

World::Effects World::OnLost(int part, int seconds, const std::string& why) {
  if (has_ended_ || parts_[part].has_ended || parts_[part].is_lost) {
    return {};
  }
  parts_[part].is_lost = true;
  Effects effects;
  proto::WorldEnded end;
  end.set_state(proto::FAILED);
  end.set_reason(fmt::format("no word from {} for {} s{}{}", parts_[part].site, seconds,
                             why.empty() ? "" : ": ", why));
  end.set_remedy(
      fmt::format("see what is wrong there: sekisho doctor {}; its ranks are ended once it is back",
                  parts_[part].site));
  if (IsNeeded(parts_[part])) {
    Fail(std::move(end), -1, effects);
  } else {
    FailPart(part, std::move(end), effects);
  }
  return effects;
}

// How far it has come, by the last hop that was heard of.
std::string World::State::WhyNotReady() const {
  if (!trouble.empty()) {
    return trouble;
  }
  if (job_id.empty()) {
    return "its gatekeeper has not answered yet";
  }
  return waiting.empty()
             ? "its queue server has it, and its nodes have not made all of its ranks yet"
             : waiting;
}

void World::OnTrouble(int part, const std::string& why) { parts_[part].trouble = why; }

World::Effects World::OnLate(int seconds) {
  if (is_released_) {
    return {};
  }
  if (hold_ == Hold::kHeld) {
    return Abort(fmt::format("its user has not released it within {} s", seconds),
                 "give it more time (--ready-within), and release it: sekisho coalloc release");
  }
  Effects effects;
  for (int part = 0; part < int(parts_.size()); ++part) {
    const State& state = parts_[part];
    if (state.ready || state.dropped || state.has_ended) {
      continue;
    }
    proto::WorldEnded end;
    end.set_state(proto::FAILED);
    end.set_reason(fmt::format("{} does not stand ready within {} s: {}", NameOf(part), seconds,
                               state.WhyNotReady()));
    end.set_remedy("try again later, or with fewer ranks there");
    if (state.start == proto::Charter::STRICT_BARRIER) {
      Fail(std::move(end), -1, effects);
    } else {
      FailPart(part, std::move(end), effects);
      Effects told = OnConnected(part);
      std::move(told.orders.begin(), told.orders.end(), std::back_inserter(effects.orders));
    }
  }
  return effects;
}

// Before the release its start type says so, and then whether the others have its ranks in their world; never once it was
// dropped.
bool World::IsNeeded(const State& part) const {
  return !part.dropped && (is_released_ ? part.is_member() : part.start == proto::Charter::STRICT_BARRIER);
}

void World::FailPart(int part, proto::WorldEnded end, Effects& effects) {
  State& state = parts_[part];
  if (IsNeeded(state) || failure_) {
    Fail(std::move(end), part, effects);
    return;
  }
  if (!state.dropped) {
    state.dropped = end.reason();
    proto::LeadUpdate::Dropped& dropped = *effects.updates.emplace_back().mutable_dropped();
    dropped.set_part(part);
    dropped.set_reason(end.reason());
    const bool is_any_left =
        std::any_of(parts_.begin(), parts_.end(), [](const State& each) { return !each.dropped; });
    if (!is_any_left) {
      Fail(std::move(end), part, effects);
      return;
    }
    ReleaseIfWhole(effects);
  }
  EndIfComplete(effects);
}

// The first failure counts; all other parts are told.
void World::Fail(proto::WorldEnded end, int except, Effects& effects) {
  if (!failure_ && !has_ended_) {
    failure_ = std::move(end);
    ToAll(effects, except);
  }
  EndIfComplete(effects);
}

void World::EndIfComplete(Effects& effects) {
  if (has_ended_ || std::any_of(parts_.begin(), parts_.end(), [](const State& part) {
        return !part.has_ended && !part.is_lost;
      })) {
    return;
  }
  has_ended_ = true;
  if (failure_) {
    end_ = *failure_;
  } else {
    end_.set_state(proto::DONE);
  }
  *effects.updates.emplace_back().mutable_ended() = end_;
}

}  // namespace sekisho::jobmanager
