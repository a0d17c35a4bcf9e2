// SPDX-License-Identifier: Apache-2.0
// The leader's part about edits of a held world: each is stored before it is answered and before
// any part is told.  docs/protocol/15-mpirun.md, "Held".
#include "jobmanager/leader.h"

#include "jobmanager/errors.h"
#include "jobmanager/part_check.h"
#include "proto/signed_parts.pb.h"

namespace sekisho::jobmanager {
namespace {

// What its user has signed must be for this leader, and for the place that is next.
absl::Status CheckAdded(const proto::LedWorld& led, const proto::LeadRequest::Part& part) {
  RETURN_IF_ERROR(CheckPart(part, led.name(), led.begin().part_size(), /*is_held=*/true));
  proto::RequestBody body;
  body.ParseFromString(part.submit().body());
  const proto::Charter& charter = body.submit().charter();
  if (charter.leader_key() != led.open()) {
    return errors::Malformed("the part's charter is for another leader");
  }
  if (led.begin().part_size() >= kPartsMost) {
    return errors::TooManyParts(kPartsMost);
  }
  if (charter.part() != led.begin().part_size()) {
    return errors::EditedMeanwhile(charter.part(), led.begin().part_size());
  }
  return absl::OkStatus();
}

}  // namespace

awaitable<absl::Status> Leader::Edit(std::shared_ptr<Leader> self, proto::CoallocRequest request) {
  switch (request.action_case()) {
    case proto::CoallocRequest::kLook:
      co_return absl::OkStatus();
    case proto::CoallocRequest::kAdd:
      co_return co_await Add(self, request.add().part());
    case proto::CoallocRequest::kDrop:
      co_return co_await Drop(self, request.drop().part());
    case proto::CoallocRequest::kRelease:
      co_return co_await EndHold(self, request.release().only_if_ready());
    case proto::CoallocRequest::kCancel:
      self->Apply(self, self->world_.Cancel());
      while (!self->has_ended()) {
        co_await self->changed_->Wait();
      }
      co_return absl::OkStatus();
    default:
      co_return errors::Malformed("what is to be done with the world?");
  }
}

awaitable<absl::Status> Leader::Add(std::shared_ptr<Leader> self, proto::LeadRequest::Part part) {
  CO_RETURN_IF_ERROR(CheckAdded(self->led_, part));
  CO_ASSIGN_OR_RETURN(World::Effects effects, self->world_.Add(WorldPartOf(part)));
  const int number = int(self->parts_.size());
  *self->led_.mutable_begin()->add_part() = std::move(part);
  self->parts_.push_back({.heard = std::chrono::steady_clock::now()});
  const absl::Status stored = co_await Store(self, std::move(effects));
  // Also if it is to be cancelled at once.
  co_spawn(self->loop_, Attend(self, number), Logged("a part of world=" + self->led_.name()));
  co_return stored;
}

awaitable<absl::Status> Leader::Drop(std::shared_ptr<Leader> self, int part) {
  CO_ASSIGN_OR_RETURN(World::Effects effects, self->world_.Drop(part));
  co_return co_await Store(self, std::move(effects));
}

awaitable<absl::Status> Leader::EndHold(std::shared_ptr<Leader> self, bool only_if_ready) {
  CO_ASSIGN_OR_RETURN(World::Effects effects, self->world_.EndHold(only_if_ready));
  self->led_.set_is_release_asked(true);
  co_return co_await Store(self, std::move(effects));
}

// What cannot be stored ends the world: nobody would lead it as its user believes.
awaitable<absl::Status> Leader::Store(std::shared_ptr<Leader> self, World::Effects effects) {
  self->NoteDropped();
  const absl::Status saved = co_await self->save_();
  if (!saved.ok()) {
    effects = self->world_.Abort("its leader cannot store an edit: " + Message(saved),
                                 "tell the administrator of the first site");
  }
  self->Apply(self, std::move(effects));
  co_return saved;
}

proto::CoallocReply Leader::View() const {
  proto::CoallocReply view = world_.View();
  view.set_ready_by_ms(led_.ready_by_ms());
  proto::SignedParts signed_parts;
  for (int number = 0; number < view.part_size(); ++number) {
    const proto::LeadRequest::Part& about = led_.begin().part(number);
    view.mutable_part(number)->set_address(about.address());
    *signed_parts.add_submit() = about.submit();
  }
  view.MergeFromString(signed_parts.SerializeAsString());
  return view;
}

}  // namespace sekisho::jobmanager
