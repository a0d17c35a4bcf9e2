// SPDX-License-Identifier: Apache-2.0
#include "client/world/world_sign.h"

#include <chrono>

#include <fmt/format.h>

#include "client/site/site_call.h"

namespace sekisho::client {
namespace {

constexpr std::chrono::milliseconds kPassageLife = std::chrono::hours(7 * 24);

}  // namespace

absl::StatusOr<proto::LeadRequest::Part> SignPart(const WorldPart& part, const proto::Charter& terms,
                                                  bool has_input) {
  proto::RequestBody submit;
  submit.set_request_id(fmt::format("{}.{}", terms.world(), terms.part()));
  submit.mutable_submit()->set_rsl(part.rsl);
  submit.mutable_submit()->set_has_input(has_input);
  *submit.mutable_submit()->mutable_file() = part.files;
  *submit.mutable_submit()->mutable_charter() = terms;
  proto::RequestBody passage;
  passage.mutable_passage()->set_world(terms.world());
  passage.mutable_passage()->set_leader_key(terms.leader_key());
  passage.mutable_passage()->set_until_ms(NowMs() + kPassageLife.count());

  const Session& session = *part.session;
  proto::LeadRequest::Part signed_part;
  signed_part.set_site(part.site);
  signed_part.set_address(session.target().contact.Address());
  signed_part.set_gatekeeper_subject(session.gatekeeper_subject());
  signed_part.set_count(part.ranks.count);
  ASSIGN_OR_RETURN(*signed_part.mutable_submit(), session.Sign(std::move(submit)));
  ASSIGN_OR_RETURN(*signed_part.mutable_passage(), session.Sign(std::move(passage)));
  return signed_part;
}

}  // namespace sekisho::client
