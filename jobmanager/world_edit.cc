// SPDX-License-Identifier: Apache-2.0
// The world's part about edits by its user before the release: docs/protocol/15-mpirun.md, "Held".
#include <algorithm>

#include <fmt/format.h>

#include "common/part_name.h"
#include "jobmanager/errors.h"
#include "jobmanager/world.h"

namespace sekisho::jobmanager {

absl::Status World::MayEdit() const {
  if (has_ended_) {
    return errors::WorldIsOver(name_, failure_ ? failure_->reason() : "its program has ended");
  }
  if (failure_) {
    return errors::WorldIsOver(name_, failure_->reason());
  }
  if (is_released_) {
    return errors::WorldIsReleased(name_);
  }
  switch (hold_) {
    case Hold::kNone:
      return errors::WorldIsNotHeld(name_);
    case Hold::kOver:
      return errors::ReleaseIsAskedFor(name_);
    case Hold::kHeld:
      break;
  }
  return absl::OkStatus();
}

absl::StatusOr<World::Effects> World::Add(const Part& part) {
  RETURN_IF_ERROR(MayEdit());
  const auto replaced = part.replaces;
  if (replaced && (*replaced < 0 || *replaced >= int(parts_.size()))) {
    return errors::NoSuchPart(name_, *replaced);
  }
  Append(part);
  if (!replaced || parts_[*replaced].dropped) {
    return Effects();
  }
  return Remove(*replaced, "its user replaced it by " + PartName(int(parts_.size()) - 1, part.label));
}

absl::StatusOr<World::Effects> World::Drop(int part) {
  RETURN_IF_ERROR(MayEdit());
  if (part < 0 || part >= int(parts_.size()) || parts_[part].dropped) {
    return errors::NoSuchPart(name_, part);
  }
  const auto stays = [&](const State& each) { return &each != &parts_[part] && !each.dropped; };
  if (std::none_of(parts_.begin(), parts_.end(), stays)) {
    return errors::LastPart(name_);
  }
  return Remove(part, "its user dropped it");
}

World::Effects World::Remove(int part, const std::string& why) {
  parts_[part].dropped = why;
  Effects effects = OnConnected(part);
  proto::LeadUpdate::Dropped& dropped = *effects.updates.emplace_back().mutable_dropped();
  dropped.set_part(part);
  dropped.set_reason(why);
  return effects;
}

absl::StatusOr<World::Effects> World::EndHold(bool only_if_ready) {
  RETURN_IF_ERROR(MayEdit());
  for (int part = 0; only_if_ready && part < int(parts_.size()); ++part) {
    if (parts_[part].is_awaited() && !parts_[part].ready) {
      return errors::PartIsNotReady(NameOf(part), parts_[part].WhyNotReady());
    }
  }
  hold_ = Hold::kOver;
  Effects effects;
  ReleaseIfWhole(effects);
  return effects;
}

World::Effects World::Cancel() {
  Effects effects;
  proto::WorldEnded end;
  end.set_state(proto::CANCELLED);
  end.set_gram_code(errors::kUserCancelled);
  end.set_reason("it was cancelled by its user");
  Fail(std::move(end), -1, effects);
  return effects;
}

proto::CoallocReply::State World::StateOf(const State& part) const {
  if (part.dropped) {
    return proto::CoallocReply::DROPPED;
  }
  if (part.has_ended) {
    return proto::CoallocReply::ENDED;
  }
  if (!part.ready) {
    return proto::CoallocReply::PENDING;
  }
  return is_released_ || part.starts_alone() ? proto::CoallocReply::RELEASED
                                             : proto::CoallocReply::READY;
}

proto::CoallocReply World::View() const {
  proto::CoallocReply view;
  view.set_is_held(MayEdit().ok());
  view.set_is_released(is_released_);
  const std::vector<int> first = FirstRanks();
  for (size_t i = 0; i < parts_.size(); ++i) {
    const State& state = parts_[i];
    proto::CoallocReply::Part& part = *view.add_part();
    part.set_site(state.site);
    part.set_label(state.label);
    part.set_count(state.count);
    part.set_first_rank(first[i]);
    part.set_start(state.start);
    part.set_state(StateOf(state));
    part.set_job_id(state.job_id);
    const bool is_late = !state.ready && !state.has_ended;
    part.set_reason(state.dropped ? *state.dropped : is_late ? state.WhyNotReady() : "");
    if (state.replaces) {
      part.set_replaces(*state.replaces);
    }
  }
  return view;
}

}  // namespace sekisho::jobmanager
