// SPDX-License-Identifier: Apache-2.0
// Streams whose two ends are joined: which thread moves them, and what is left to do when they end.
#include <algorithm>

#include <fcntl.h>
#include <unistd.h>

#include "common/status.h"
#include "nxproxy/relay_parts.h"

namespace sekisho::nxproxy {
namespace {

constexpr size_t kNursery = 256;  // streams at most; others go to the threads at once

}  // namespace

Relay::EndedReader::EndedReader(Relay& relay) : relay_(relay) {
  int ends[2];
  CHECK(pipe2(ends, O_CLOEXEC) == 0);
  read_ = Descriptor(ends[0]);
  write_ = Descriptor(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
  relay_.poller_.Add(read_.get(), EPOLLIN, this);
}

Relay::EndedReader::~EndedReader() {
  relay_.poller_.Remove(read_.get());
  relay_.poller_.Forget(this);
}

StreamLoop::Streams Relay::EndedReader::Take() {
  StreamLoop::Streams all;
  Stream* ended[64];
  for (ssize_t got; (got = read(read_.get(), ended, sizeof ended)) > 0;) {
    for (size_t i = 0; i < static_cast<size_t>(got) / sizeof ended[0]; ++i) {
      all.emplace_back(ended[i]);
    }
  }
  return all;
}

void Relay::Join(Descriptor outside, Descriptor inside, std::string first,
                 std::shared_ptr<Traffic> traffic) {
  const size_t early = first.size();
  auto stream = std::make_unique<Stream>(std::move(outside), std::move(inside), std::move(first));
  stream->id = next_stream_++;
  stream->endpoint_traffic = std::move(traffic);
  Launch(std::move(stream), early);
}

// A peer that has said a little before it was joined asks something: such a stream stays with this thread while it is
// young and small, and no other need wake up for it.  Bulk begins where it stays: to move it later costs throughput.
void Relay::Launch(std::unique_ptr<Stream> stream, size_t early) {
  ++streams_total_;
  stream->place = static_cast<uint32_t>(streams_.size());
  streams_.push_back(stream.get());
  if (early > 0 && early < kEarlyBytes && nursery_->size() < kNursery) {
    nursery_->Take(std::move(stream));
    return;
  }
  StreamLoop::Streams one;
  one.push_back(std::move(stream));
  HandOver(std::move(one));
}

void Relay::HandOver(StreamLoop::Streams streams) {
  const auto load = [](const std::unique_ptr<DataLoop>& one) {
    return one->streams() + (one->is_bulk_busy() ? 1000 : 0);
  };
  for (auto& stream : streams) {
    const auto best = std::min_element(loops_.begin(), loops_.end(),
                                       [&](const auto& a, const auto& b) { return load(a) < load(b); });
    (*best)->Give(std::move(stream));
  }
}

void Relay::EndTurn() {
  nursery_->EndTurn();
  for (const auto& stream : nursery_->TakeEnded()) {
    Bury(*stream);
  }
  HandOver(nursery_->TakeRestless());
  for (const auto& loop : loops_) {
    loop->Deliver();
  }
}

void Relay::Ended() {
  for (const auto& stream : ended_->Take()) {
    Bury(*stream);
  }
}

void Relay::Bury(const Stream& stream) {
  Stream* const last = streams_.back();
  streams_[stream.place] = last;
  last->place = stream.place;
  streams_.pop_back();
  if (stream.owner_traffic != nullptr) {
    registry_.StreamEnded(stream.owner_traffic->owner);
  }
  if (Endpoint* endpoint = registry_.FindEndpoint(stream.endpoint); endpoint != nullptr) {
    --endpoint->streams;
  }
}

}  // namespace sekisho::nxproxy
