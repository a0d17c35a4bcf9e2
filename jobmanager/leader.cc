// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/leader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>

#include <fcntl.h>
#include <unistd.h>

#include "common/call_metadata.h"
#include "common/caught.h"
#include "common/log.h"
#include "jobmanager/errors.h"
#include "jobmanager/queue_server.h"

namespace sekisho::jobmanager {
namespace {

using std::chrono::milliseconds;

constexpr char kWorlds[] = "worlds";
constexpr milliseconds kRedialMin{200};
constexpr milliseconds kRedialMax{5'000};
constexpr std::chrono::seconds kReach{15};  // a site that was never reached is given up then
constexpr std::chrono::seconds kSilence{10};  // one that was, and is silent; besides the time to notice
constexpr std::chrono::minutes kTellEnd{10};  // who was cut off
constexpr std::chrono::hours kTellLater{
    24};  // so long a lost one is tried, to end what it may still run

World::Hold HoldOf(const proto::LedWorld& led) {
  if (!led.begin().hold()) {
    return World::Hold::kNone;
  }
  return led.is_release_asked() ? World::Hold::kOver : World::Hold::kHeld;
}

World MakeWorld(const proto::LedWorld& led) {
  std::vector<World::Part> parts;
  for (const auto& part : led.begin().part()) {
    parts.push_back(WorldPartOf(part));
  }
  return World(led.name(), parts, {led.dropped().begin(), led.dropped().end()}, HoldOf(led));
}

}  // namespace

int64_t NowMs() {
  return std::chrono::duration_cast<milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

World::Part WorldPartOf(const proto::LeadRequest::Part& part) {
  proto::RequestBody body;  // one that cannot be read is refused where it goes
  (void)body.ParseFromString(part.submit().body());
  const proto::Charter& charter = body.submit().charter();
  World::Part made = {part.site(), part.count(), charter.start()};
  made.ranks.assign(charter.rank().begin(), charter.rank().end());
  made.label = charter.label();
  made.is_independent = charter.independent();
  if (part.has_replaces()) {
    made.replaces = part.replaces();
  }
  return made;
}

Leader::Leader(Loop& loop, proto::LedWorld led, const DialGatekeeper& dial, LedTraffic& traffic, Save save)
    : loop_(loop),
      led_(std::move(led)),
      key_{led_.secret(), led_.open()},
      dial_(dial),
      traffic_(traffic),
      save_(std::move(save)),
      world_(MakeWorld(led_)),
      parts_(size_t(led_.begin().part_size()), Attended{.heard = std::chrono::steady_clock::now()}),
      changed_(std::make_shared<Signal>(loop)) {
  if (led_.is_released()) {
    world_.Release();  // what follows is said once its parts are there
  }
}

void Leader::Start(std::shared_ptr<Leader> self, std::function<void()> on_end) {
  self->on_end_ = std::move(on_end);
  for (int part = 0; part < self->led_.begin().part_size(); ++part) {
    co_spawn(self->loop_, Attend(self, part), Logged("a part of world=" + self->led_.name()));
  }
  co_spawn(self->loop_, Limit(self), Logged("the limit of world=" + self->led_.name()));
}

awaitable<void> Leader::Limit(std::shared_ptr<Leader> self) {
  const int64_t left_ms = std::max<int64_t>(self->led_.ready_by_ms() - NowMs(), 0);
  while (!self->has_ended() && NowMs() < self->led_.ready_by_ms()) {
    co_await self->changed_->WaitFor(
        milliseconds(std::max<int64_t>(self->led_.ready_by_ms() - NowMs(), 1)));
  }
  if (!self->has_ended()) {
    self->Apply(self, self->world_.OnLate(int(left_ms / 1000)));
  }
}

// One call after the other, until the part is over.
awaitable<void> Leader::Attend(std::shared_ptr<Leader> self, int part) {
  using Clock = std::chrono::steady_clock;
  for (milliseconds pause = kRedialMin;; pause = std::min(pause * 2, kRedialMax)) {
    const absl::Status status =
        co_await Caught("a call to a part of world=" + self->led_.name(), self->Converse(self, part));
    Attended& attended = self->parts_[part];  // until the next co_await: parts may be added
    attended.call.reset();
    if (std::exchange(attended.is_heard, false)) {
      attended.heard = Clock::now();
    }
    const auto silence = Clock::now() - attended.heard;
    if (attended.is_over ||
        (self->has_ended() && (!self->world_.IsLost(part) || silence > kTellLater))) {
      break;
    }
    spdlog::warn("call to a part ended world={} part={}: {}", self->led_.name(), part,
                 Printable(Message(status)));
    self->world_.OnTrouble(part, self->WhyBroken(part, status));
    // Of a part that is there an outage is no verdict: it may pass.
    const bool is_submitted = !attended.job_id.empty();
    const bool is_final = is_submitted ? IsVerdict(status) && status.code() != absl::StatusCode::kUnavailable
                                       : IsVerdict(status) || silence > kReach;
    if (!status.ok() && is_final) {
      attended.is_over = true;
      const std::string site = self->led_.begin().part(part).site();
      const absl::Status refusal =
          IsVerdict(status) ? status : errors::SiteNotReached(site, self->WhyBroken(part, status));
      self->Apply(self, self->world_.OnRefused(part, refusal));
      break;
    }
    if (is_submitted && silence > kSilence) {
      self->Apply(self,
                  self->world_.OnLost(part, int(kSilence.count()), self->WhyBroken(part, status)));
    }
    co_await Sleep(self->loop_, pause);
  }
  self->parts_[part].is_over = true;
  self->EndIfOver();
}

// With the hop: what those behind the gatekeeper say of theirs, and a call that nobody has answered
// ended before them.
std::string Leader::WhyBroken(int part, const absl::Status& status) const {
  return IsVerdict(status) ? Message(status)
                           : fmt::format("the gatekeeper {} does not answer: {}",
                                         led_.begin().part(part).address(), Message(status));
}

// The world may have ended before: a part that was lost is still to be told.
void Leader::EndIfOver() {
  if (on_end_ && std::all_of(parts_.begin(), parts_.end(), std::mem_fn(&Attended::is_over))) {
    asio::post(loop_, std::exchange(on_end_, nullptr));
  }
}

awaitable<absl::Status> Leader::Converse(std::shared_ptr<Leader> self, int part) {
  const proto::LeadRequest::Part about = led_.begin().part(part);
  const auto channel = dial_(about.address(), about.gatekeeper_subject());
  const auto stub = proto::JobService::NewStub(channel);
  rpc::CallOptions options;
  options.metadata.emplace_back(metadata::kPassage, about.passage().SerializeAsString());
  proto::RequestBody body;
  if (body.ParseFromString(about.submit().body())) {
    options.metadata.emplace_back(metadata::kService, body.service());
    if (!body.account().empty()) {
      options.metadata.emplace_back(metadata::kAccount, body.account());
    }
  }
  auto call = rpc::Start<Call>(
      loop_, options, [&](Call& started) { stub->async()->Part(&started.context(), &started); });
  proto::PartDown submit;
  *submit.mutable_submit() = about.submit();
  traffic_.NoteSubmit(submit);
  call->Push(std::move(submit));
  proto::PartUp up;
  for (;;) {
    const bool is_read = co_await call->Read(up);
    if (!is_read) {
      break;
    }
    traffic_.NoteHeard(up);
    if (up.has_submitted()) {
      parts_[part].job_id = up.submitted().job_id();
      parts_[part].call = call;
      Apply(self, world_.OnSubmitted(part, up.submitted().job_id()));
      Apply(self, world_.OnConnected(part));
      continue;
    }
    parts_[part].is_heard = true;
    if (up.has_report()) {
      parts_[part].is_over = up.report().has_ended();
      Apply(self, world_.OnReport(part, up.report()));
    }
  }
  co_return co_await call->Finish();
}

// So that each site can say where those are whom its ranks meet.
void Leader::NameParts(int to, proto::Order::Release& release) const {
  for (const int part : world_.Members(to)) {
    proto::Order::Release::Part& named = *release.add_part();
    named.set_site(led_.begin().part(part).site());
    named.set_address(led_.begin().part(part).address());
    named.set_job_id(parts_[part].job_id);
  }
}

void Leader::Apply(const std::shared_ptr<Leader>& self, World::Effects effects) {
  for (auto& [part, order] : effects.orders) {
    if (order.has_release()) {
      NameParts(part, *order.mutable_release());
    }
    if (parts_[part].call != nullptr) {
      proto::PartDown down;
      down.mutable_order()->set_body(order.SerializeAsString());
      down.mutable_order()->set_signature(identity::SignOrder(down.order().body(), key_));
      traffic_.NoteOrder(order, down);
      parts_[part].call->Push(std::move(down));
    }
  }
  std::move(effects.updates.begin(), effects.updates.end(), std::back_inserter(updates_));
  if (effects.is_release_due) {
    co_spawn(loop_, Release(self), Logged("the release of world=" + led_.name()));
  }
  if (has_ended() && !is_end_logged_) {
    is_end_logged_ = true;
    spdlog::info("world ended world={} state={} reason=\"{}\"", led_.name(),
                 proto::JobState_Name(world_.end().state()), Printable(world_.end().reason()));
  }
  changed_->Notify();
}

void Leader::NoteDropped() {
  led_.clear_dropped();
  for (int part = 0; part < int(parts_.size()); ++part) {
    if (world_.IsDropped(part)) {
      led_.add_dropped(part);
    }
  }
}

// From here on the ranks may run: whoever leads after a crash must know.
awaitable<void> Leader::Release(std::shared_ptr<Leader> self) {
  if (self->led_.is_released()) {
    self->Apply(self, self->world_.Release());
    co_return;
  }
  self->NoteDropped();
  self->led_.set_is_released(true);
  const absl::Status saved = co_await self->save_();
  if (!saved.ok()) {
    self->Apply(self, self->world_.Abort("its leader cannot store its release: " + Message(saved),
                                         "tell the administrator of the first site"));
    co_return;
  }
  self->Apply(self, self->world_.Release());
}

absl::Status Leaders::Resume() {
  ASSIGN_OR_RETURN(const std::string text, store_.Value(kWorlds));
  proto::LedWorlds worlds;
  if (!worlds.ParseFromString(text)) {
    return absl::DataLossError("the stored worlds cannot be read");
  }
  Mark(worlds.world_size() > 0);
  for (const proto::LedWorld& led : worlds.world()) {
    spdlog::info("leading on world={} parts={}", led.name(), led.begin().part_size());
    Add(led);
  }
  return absl::OkStatus();
}

awaitable<absl::StatusOr<std::shared_ptr<Leader>>> Leaders::Begin(proto::LedWorld led) {
  if (leaders_.count(led.name()) > 0) {
    co_return errors::WorldTaken(led.name());
  }
  spdlog::info("leading world={} parts={}", led.name(), led.begin().part_size());
  const std::shared_ptr<Leader> leader = Add(std::move(led));
  Put();
  CO_RETURN_IF_ERROR(co_await store_.Flush());
  co_return leader;
}

std::shared_ptr<Leader> Leaders::Find(const std::string& world, const std::string& subject) const {
  const auto found = leaders_.find(world);
  return found != leaders_.end() && found->second->led().subject() == subject ? found->second
                                                                              : nullptr;
}

std::shared_ptr<Leader> Leaders::Add(proto::LedWorld led) {
  const std::string name = led.name();
  auto leader =
      std::make_shared<Leader>(loop_, std::move(led), dial_, traffic_, [this]() -> awaitable<absl::Status> {
        Put();
        co_return co_await store_.Flush();
      });
  leaders_[name] = leader;
  Leader::Start(leader, [this, name] {
    over_.insert(name);
    Put();
    co_spawn(loop_, ForgetLater(name), Logged("forgetting world=" + name));
  });
  return leader;
}

// Who was cut off still hears how it ended.
awaitable<void> Leaders::ForgetLater(std::string name) {
  co_await Sleep(loop_, kTellEnd);
  leaders_.erase(name);
  over_.erase(name);
}

void Leaders::Put() {
  proto::LedWorlds worlds;
  for (const auto& [name, leader] : leaders_) {
    if (over_.count(name) == 0) {
      *worlds.add_world() = leader->led();
    }
  }
  store_.Put(kWorlds, worlds.SerializeAsString());
  Mark(worlds.world_size() > 0);
}

// The gatekeeper looks for it when it starts: a world whose user has gone has nobody else who would call us.
void Leaders::Mark(bool leads) {
  if (!leads) {
    unlink(marker_.c_str());
    return;
  }
  const int fd = open(marker_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    spdlog::error("{}: {}: worlds are led on after a restart only when their user calls", marker_, std::strerror(errno));
    return;
  }
  close(fd);
}

}  // namespace sekisho::jobmanager
