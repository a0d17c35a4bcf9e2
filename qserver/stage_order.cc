// SPDX-License-Identifier: Apache-2.0
#include "qserver/stage_order.h"

#include "rsl/location.h"

namespace sekisho::qserver {

Content ContentOf(const proto::RequestBody::ClientFile& file) {
  Content content;
  content.set_sha256(file.sha256());
  content.set_size(file.size());
  return content;
}

StagerOrder OrderFor(const StageIn& item, const ClientFiles& files, const StagingRules& rules) {
  StagerOrder order;
  if (item.file != kNotOfTheClient) {
    StagerOrder::Place& place = *order.mutable_place();
    *place.mutable_content() = ContentOf(files[item.file]);
    place.set_target(item.target);
    place.set_mode(item.mode);
    place.set_link(item.is_shared);
    return order;
  }
  const rsl::Location from = rsl::ReadLocation(item.source);
  if (from.kind == rsl::Location::Kind::kFile) {
    order.mutable_copy()->set_from(from.path);
    order.mutable_copy()->set_to(item.target);
    return order;
  }
  StagerOrder::Fetch& fetch = *order.mutable_fetch();
  fetch.set_url(item.source);
  fetch.set_target(item.target);
  fetch.set_mode(item.mode);
  fetch.set_link(item.is_shared);
  fetch.set_bytes_most(rules.file_bytes_max);
  return order;
}

}  // namespace sekisho::qserver
