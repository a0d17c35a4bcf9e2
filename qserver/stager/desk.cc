// SPDX-License-Identifier: Apache-2.0
#include "qserver/stager/desk.h"

#include <utility>

#include "common/refusal.h"
#include "qserver/stager/web.h"

namespace sekisho::qserver::stager {
namespace {

StagerReply Failure(const absl::Status& status) {
  StagerReply reply;
  reply.mutable_failed()->set_what(Message(status));
  reply.mutable_failed()->set_is_refused(status.code() == absl::StatusCode::kInvalidArgument ||
                                         status.code() == absl::StatusCode::kPermissionDenied);
  reply.mutable_failed()->set_is_other(status.code() == absl::StatusCode::kDataLoss);
  return reply;
}

}  // namespace

// Not before: a job whose files are more than the cache may keep could never have them all.
Desk::~Desk() {
  if (has_placed_) {
    cache_->Trim(cache_bytes_);
  }
}

std::optional<StagerReply> Desk::Do(const StagerOrder& order) {
  if (order.has_begin()) {
    const StagerOrder::Begin& begin = order.begin();
    roots_ = {begin.home()};
    roots_.insert(roots_.end(), begin.root().begin(), begin.root().end());
    cache_bytes_ = begin.cache_bytes();
    job_id_ = begin.job_id();
    Below place{begin.home(), ".sekisho/cache"};
    if (auto own = FindBelow(roots_, begin.cache()); own.ok() && !own->path.empty()) {
      place = *std::move(own);
    }
    cache_ = std::make_unique<Cache>(std::move(place), begin.job_id());
    return std::nullopt;
  }
  if (order.kind_case() == StagerOrder::kData) {
    trouble_.Update(Add(order.data()));
    return std::nullopt;
  }
  if (cache_ == nullptr) {
    return Failure(absl::FailedPreconditionError("expected to be told first for whom"));
  }
  const absl::StatusOr<StagerReply> reply = Answer(order);
  return reply.ok() ? *reply : Failure(reply.status());
}

// What is wrong with the file stays so; what is with the server may pass.
absl::StatusOr<Content> Desk::SendFile(const Below& from, const std::string& url, uint64_t offset) {
  const auto for_good = [](const absl::Status& status) { return absl::InvalidArgumentError(Message(status)); };
  auto reading = Reading::Begin(from, offset);
  if (!reading.ok()) {
    return for_good(reading.status());
  }
  Content content;
  content.set_size(reading->entry().size());
  const bool has_all = offset > 0 && offset >= content.size();
  if (!has_all) {
    RETURN_IF_ERROR(SendToUrl(url, offset, content.size(), [&]() -> absl::StatusOr<std::string> {
      auto data = reading->Next();
      return data.ok() ? data : for_good(data.status());
    }));
  }
  content.set_sha256(reading->Finish());
  return content;
}

absl::Status Desk::Add(std::string_view data) {
  return incoming_ ? incoming_->Add(data) : absl::FailedPreconditionError("no file is open");
}

absl::StatusOr<StagerReply> Desk::Answer(const StagerOrder& order) {
  StagerReply reply;
  switch (order.kind_case()) {
    case StagerOrder::kLook:
      for (const Content& content : order.look().content()) {
        *reply.mutable_looked()->add_have() = cache_->Look(content);
      }
      reply.mutable_looked();
      return reply;
    case StagerOrder::kOpen: {
      trouble_ = absl::OkStatus();
      ASSIGN_OR_RETURN(incoming_, cache_->Receive(order.open().content()));
      reply.mutable_opened()->set_offset(incoming_->offset());
      return reply;
    }
    case StagerOrder::kClose: {
      auto incoming = std::exchange(incoming_, std::nullopt);
      if (!trouble_.ok() && incoming) {
        incoming->Drop();  // who else has files there needs the room
      }
      RETURN_IF_ERROR(trouble_);
      if (!incoming) {
        return absl::FailedPreconditionError("no file is open");
      }
      reply.mutable_closed()->set_offset(incoming->offset());
      ASSIGN_OR_RETURN(const std::optional<Stamp> seen, cache_->Finish(*std::move(incoming)));
      reply.mutable_closed()->set_whole(seen.has_value());
      if (seen) {
        *reply.mutable_closed()->mutable_seen() = *seen;
      }
      return reply;
    }
    case StagerOrder::kPlace: {
      const StagerOrder::Place& place = order.place();
      ASSIGN_OR_RETURN(const Below target, FindBelow(roots_, place.target()));
      has_placed_ = true;
      RETURN_IF_ERROR(cache_->Place(place.content(), target, place.mode(), place.link(), place.seen()));
      reply.mutable_done();
      return reply;
    }
    case StagerOrder::kList: {
      ASSIGN_OR_RETURN(const Below where, FindBelow(roots_, order.list().path()));
      ASSIGN_OR_RETURN(*reply.mutable_listed(), List(where));
      return reply;
    }
    case StagerOrder::kRead: {
      ASSIGN_OR_RETURN(const Below where, FindBelow(roots_, order.read().path()));
      ASSIGN_OR_RETURN(reading_, Reading::Begin(where, order.read().offset()));
      *reply.mutable_entry() = reading_->entry();
      return reply;
    }
    case StagerOrder::kNext: {
      if (!reading_) {
        return absl::FailedPreconditionError("no file is read");
      }
      ASSIGN_OR_RETURN(*reply.mutable_data(), reading_->Next());
      if (reply.data().empty()) {
        reply.mutable_ended()->set_sha256(reading_->Finish());
        reading_.reset();
      }
      return reply;
    }
    case StagerOrder::kCopy: {
      ASSIGN_OR_RETURN(const Below from, FindBelow(roots_, order.copy().from()));
      ASSIGN_OR_RETURN(const Below to, FindBelow(roots_, order.copy().to()));
      ASSIGN_OR_RETURN(*reply.mutable_copied(), Copy(from, to, ".sekisho." + job_id_ + ".part"));
      return reply;
    }
    case StagerOrder::kRemove: {
      ASSIGN_OR_RETURN(const Below where, FindBelow(roots_, order.remove().path()));
      RETURN_IF_ERROR(order.remove().is_tree() ? RemoveTree(where) : Remove(where));
      reply.mutable_done();
      return reply;
    }
    case StagerOrder::kFetch: {
      const StagerOrder::Fetch& fetch = order.fetch();
      ASSIGN_OR_RETURN(const Below target, FindBelow(roots_, fetch.target()));
      ASSIGN_OR_RETURN(const Cache::Taken taken, cache_->Take([&](const Cache::Add& add) {
        return FetchUrl(fetch.url(), fetch.bytes_most(), add);
      }));
      has_placed_ = true;
      RETURN_IF_ERROR(cache_->Place(taken.content, target, fetch.mode(), fetch.link(), taken.seen));
      *reply.mutable_copied() = taken.content;
      return reply;
    }
    case StagerOrder::kKeep: {
      ASSIGN_OR_RETURN(const Below where, FindBelow(roots_, order.keep().path()));
      RETURN_IF_ERROR(Keep(where, order.keep().content(), ".sekisho." + job_id_ + ".part"));
      reply.mutable_done();
      return reply;
    }
    case StagerOrder::kWrite: {
      const StagerOrder::Write& write = order.write();
      ASSIGN_OR_RETURN(const Below where, FindBelow(roots_, write.path()));
      RETURN_IF_ERROR(WriteFrom(where, write.offset(), write.data(), write.mode()));
      reply.mutable_done();
      return reply;
    }
    case StagerOrder::kSend: {
      ASSIGN_OR_RETURN(const Below from, FindBelow(roots_, order.send().path()));
      ASSIGN_OR_RETURN(*reply.mutable_copied(), SendFile(from, order.send().url(), order.send().offset()));
      return reply;
    }
    case StagerOrder::kMakeDirectory: {
      ASSIGN_OR_RETURN(const Below where, FindBelow(roots_, order.make_directory().path()));
      RETURN_IF_ERROR(MakeDirectory(where));
      reply.mutable_done();
      return reply;
    }
    default:
      return absl::UnimplementedError("an order of no known kind");
  }
}

}  // namespace sekisho::qserver::stager
