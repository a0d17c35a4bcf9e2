// SPDX-License-Identifier: Apache-2.0
// Rings between two contexts of this host: docs/protocol/9-pm.md, "Inside a host".
#include <errno.h>
#include <unistd.h>

#include <algorithm>

#include "transport/pm/daemon/registry.h"
#include "transport/pm/near_links.h"

namespace sekisho::pm {
namespace {

constexpr std::size_t kOffersMax = 256;
constexpr std::ptrdiff_t kOffersOfUser = 128;

}  // namespace

void Registry::ForgetOffers(const Context& context) {
  std::erase_if(offers_, [&context](const Offer& offer) {
    if (offer.has != &context && offer.other != &context) return false;
    close(offer.memory);
    return true;
  });
}

// Whoever asks first gets a new one, the other the same.  Who asks again has given up what it had.
int Registry::Near(const Client& client, const AskMessage& ask, const Received& received) {
  if (received.fd_count != 1) return EINVAL;
  const Context* const context = FindByMemory(ask, received.fds[0]);
  if (context == nullptr) return ENOENT;
  const Context* const other = Find(context->key, context->number, ask.peer, context->uid);
  if (other == nullptr || other == context || other->parked) return ENOENT;
  const auto take = [this](const Context* has, const Context* wants) {
    const auto at = std::find_if(offers_.begin(), offers_.end(), [=](const Offer& offer) {
      return offer.has == has && offer.other == wants;
    });
    if (at == offers_.end()) return -1;
    const int memory = at->memory;
    offers_.erase(at);
    return memory;
  };
  if (const int memory = take(other, context); memory >= 0) {
    Reply(client.fd, 0, "", std::span(&memory, 1));
    close(memory);
    return 0;
  }
  if (const int old = take(context, other); old >= 0) close(old);
  const auto is_users = [context](const Offer& offer) { return offer.has->uid == context->uid; };
  // The oldest may be to one who never asks.
  if (std::count_if(offers_.begin(), offers_.end(), is_users) >= kOffersOfUser) {
    const auto oldest = std::find_if(offers_.begin(), offers_.end(), is_users);
    close(oldest->memory);
    offers_.erase(oldest);
  }
  if (offers_.size() >= kOffersMax) return EMFILE;
  const int memory = NearMemory::Make();
  if (memory < 0) return errno;
  offers_.push_back({context, other, memory});
  Reply(client.fd, 0, "", std::span(&memory, 1));
  return 0;
}

}  // namespace sekisho::pm
