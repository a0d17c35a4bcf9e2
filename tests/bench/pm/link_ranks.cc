// SPDX-License-Identifier: Apache-2.0
// The small MPI over a link: the same code over each.
#include "tests/bench/pm/ranks.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <list>

namespace sekisho::pm_bench {

namespace {

class LinkRanks final : public Ranks {
 public:
  explicit LinkRanks(std::unique_ptr<Link> link)
      : link_(std::move(link)), peers_(static_cast<std::size_t>(link_->size)) {}
  int rank() const override { return link_->rank; }
  int size() const override { return link_->size; }
  Link& link() override { return *link_; }

  void Send(int to, std::uint32_t tag, Bytes message) override;
  void Receive(int from, std::uint32_t tag, MutableBytes room) override;
  void WaitAll() override;
  void Barrier() override;
  void Broadcast(int root, MutableBytes data) override;  // binomial tree
  void Allgather(Bytes own, MutableBytes all) override;  // ring
  void Alltoallv(const unsigned char* out, std::span<const std::size_t> out_sizes,
                 unsigned char* in,
                 std::span<const std::size_t> in_sizes) override;  // pairwise exchange, all at once
  void Finish() override;

 private:
  struct Head {
    std::uint32_t tag = 0;
    std::uint32_t size = 0;
  };
  struct Outgoing {
    Head head;
    Bytes body;
    std::size_t done = 0;
  };
  struct Posted {
    std::uint32_t tag = 0;
    MutableBytes room;
    std::size_t done = 0;
    bool active = false;
  };
  struct Early {  // arrived before it was asked for
    std::uint32_t tag = 0;
    std::size_t size = 0;
    std::vector<unsigned char> bytes;  // at least so many
    bool is_whole = false;
  };
  struct Peer {
    std::deque<Outgoing> out;
    std::list<Posted> posted;
    std::list<Early> early;
    Head head;
    std::size_t head_done = 0, body_done = 0;
    Posted* into = nullptr;
  };

  bool Push();
  void Take(int source, Bytes piece);
  void Keep(Peer& peer);
  void Hand(Peer& peer, std::list<Early>::iterator early, MutableBytes room);
  bool Progress();

  std::unique_ptr<Link> link_;
  std::vector<Peer> peers_;
  std::vector<std::vector<unsigned char>> spare_;  // new memory costs more than a message
  std::size_t open_ = 0;                           // sends and receives that are not done
};

void LinkRanks::Send(int to, std::uint32_t tag, Bytes message) {
  Peer& peer = peers_[static_cast<std::size_t>(to)];
  peer.out.push_back({{tag, static_cast<std::uint32_t>(message.size())}, message, 0});
  ++open_;
  if (peer.out.size() == 1) (void)Push();
}

// Whether anything could not leave.
bool LinkRanks::Push() {
  bool blocked = false;
  for (int i = 0; i < size(); ++i) {
    const int to = (rank() + i) % size();
    Peer& peer = peers_[static_cast<std::size_t>(to)];
    while (!peer.out.empty()) {
      Outgoing& next = peer.out.front();
      const Bytes head = In(&next.head, 1);
      const std::size_t head_done = std::min(next.done, head.size());
      next.done +=
          link_->Put(to, head.subspan(head_done), next.body.subspan(next.done - head_done));
      if (next.done < head.size() + next.body.size()) {
        blocked = true;
        break;
      }
      peer.out.pop_front();
      --open_;
    }
  }
  return blocked;
}

void LinkRanks::Receive(int from, std::uint32_t tag, MutableBytes room) {
  Peer& peer = peers_[static_cast<std::size_t>(from)];
  for (auto early = peer.early.begin(); early != peer.early.end(); ++early) {
    if (early->tag == tag && early->is_whole) return Hand(peer, early, room);
  }
  peer.posted.push_back({tag, room, 0, false});
  ++open_;
}

// What begins to arrive now was not asked for.
void LinkRanks::Keep(Peer& peer) {
  Early& early = peer.early.emplace_back();
  early.tag = peer.head.tag;
  early.size = peer.head.size;
  if (!spare_.empty()) {
    early.bytes = std::move(spare_.back());
    spare_.pop_back();
  }
  if (early.bytes.size() < early.size) {
    early.bytes.clear();
    early.bytes.resize(early.size);
  }
}

void LinkRanks::Hand(Peer& peer, std::list<Early>::iterator early, MutableBytes room) {
  std::memcpy(room.data(), early->bytes.data(), std::min(room.size(), early->size));
  spare_.push_back(std::move(early->bytes));
  peer.early.erase(early);
}

void LinkRanks::Take(int source, Bytes piece) {
  Peer& peer = peers_[static_cast<std::size_t>(source)];
  while (!piece.empty()) {
    if (peer.head_done < sizeof peer.head) {
      const std::size_t part = std::min(piece.size(), sizeof peer.head - peer.head_done);
      std::memcpy(reinterpret_cast<unsigned char*>(&peer.head) + peer.head_done, piece.data(),
                  part);
      peer.head_done += part;
      piece = piece.subspan(part);
      if (peer.head_done < sizeof peer.head) return;
      peer.body_done = 0;
      peer.into = nullptr;
      for (Posted& posted : peer.posted) {
        if (posted.tag != peer.head.tag || posted.active) continue;
        posted.active = true;
        peer.into = &posted;
        break;
      }
      if (peer.into == nullptr) {
        Keep(peer);
      } else if (peer.into->room.size() < peer.head.size) {
        Die("a message of " + std::to_string(peer.head.size) + " bytes is longer than its room");
      }
    }
    const std::size_t part = std::min<std::size_t>(piece.size(), peer.head.size - peer.body_done);
    unsigned char* to =
        peer.into != nullptr ? peer.into->room.data() : peer.early.back().bytes.data();
    if (part > 0) std::memcpy(to + peer.body_done, piece.data(), part);
    peer.body_done += part;
    piece = piece.subspan(part);
    if (peer.body_done < peer.head.size) return;
    peer.head_done = 0;
    if (peer.into == nullptr) {
      peer.early.back().is_whole = true;
      // Perhaps it was asked for while it arrived.
      for (auto posted = peer.posted.begin(); posted != peer.posted.end(); ++posted) {
        if (posted->active || posted->tag != peer.early.back().tag) continue;
        Hand(peer, std::prev(peer.early.end()), posted->room);
        peer.posted.erase(posted);
        --open_;
        break;
      }
      continue;
    }
    peer.posted.erase(std::find_if(peer.posted.begin(), peer.posted.end(),
                                   [&](const Posted& posted) { return &posted == peer.into; }));
    peer.into = nullptr;
    --open_;
  }
}

bool LinkRanks::Progress() {
  return link_->Poll([this](int source, Bytes piece) { Take(source, piece); });
}

void LinkRanks::WaitAll() {
  while (open_ > 0) {
    const bool blocked = Push();
    if (open_ > 0 && !Progress() && open_ > 0) link_->Wait(blocked);
  }
}

void LinkRanks::Barrier() {
  unsigned char out = 0, in = 0;
  for (int step = 1; step < size(); step *= 2) {
    Exchange((rank() + step) % size(), {&out, 1}, (rank() - step + size()) % size(), {&in, 1}, 1);
  }
}

void LinkRanks::Broadcast(int root, MutableBytes data) {
  const int own = (rank() - root + size()) % size();
  int step = 1;
  while (step < size() && (own & step) == 0) step *= 2;
  if (own != 0) {
    Receive((own - step + root) % size(), 2, data);
    WaitAll();
  }
  for (step /= 2; step > 0; step /= 2) {
    if (own + step < size()) Send((own + step + root) % size(), 2, data);
  }
  WaitAll();
}

void LinkRanks::Allgather(Bytes own, MutableBytes all) {
  const std::size_t each = own.size();
  std::memcpy(all.data() + static_cast<std::size_t>(rank()) * each, own.data(), each);
  for (int step = 1; step < size(); ++step) {
    const auto out = static_cast<std::size_t>((rank() - step + 1 + size()) % size());
    const auto in = static_cast<std::size_t>((rank() - step + size()) % size());
    Exchange((rank() + 1) % size(), all.subspan(out * each, each), (rank() - 1 + size()) % size(),
             all.subspan(in * each, each), 3);
  }
}

void LinkRanks::Alltoallv(const unsigned char* out, std::span<const std::size_t> out_sizes,
                          unsigned char* in, std::span<const std::size_t> in_sizes) {
  const auto count = static_cast<std::size_t>(size()), own = static_cast<std::size_t>(rank());
  std::vector<std::size_t> from(count), to(count);
  for (std::size_t i = 1; i < count; ++i) {
    to[i] = to[i - 1] + out_sizes[i - 1];
    from[i] = from[i - 1] + in_sizes[i - 1];
  }
  std::memcpy(in + from[own], out + to[own], out_sizes[own]);
  for (std::size_t step = 1; step < count; ++step) {
    const std::size_t source = (own + count - step) % count;
    Receive(static_cast<int>(source), 4, {in + from[source], in_sizes[source]});
  }
  for (std::size_t step = 1; step < count; ++step) {
    const std::size_t target = (own + step) % count;
    Send(static_cast<int>(target), 4, {out + to[target], out_sizes[target]});
  }
  WaitAll();
}

void LinkRanks::Finish() {
  Barrier();
  link_->Finish();
}

}  // namespace

std::unique_ptr<Ranks> OpenRanks(const std::string& link, const LinkSettings& settings) {
  if (settings.job.empty()) Die("which job? --job FILE");
  return std::make_unique<LinkRanks>(link == "tcp" ? OpenTcp(settings) : OpenPm(settings));
}

}  // namespace sekisho::pm_bench
