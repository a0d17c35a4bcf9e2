// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/led_traffic.h"

namespace sekisho::jobmanager {
namespace {

// The name of the member that is set; `kind` is its number.
std::string NameOf(const google::protobuf::Message& message, int kind) {
  const auto* field = message.GetDescriptor()->FindFieldByNumber(kind);
  return field != nullptr ? field->name() : "other";
}

}  // namespace

void LedTraffic::Note(const std::string& direction, const std::string& kind, const google::protobuf::Message& message) {
  Flow& flow = flows_[{direction, kind}];
  ++flow.messages;
  flow.bytes += message.ByteSizeLong();
}

void LedTraffic::NoteOrder(const proto::Order& order, const proto::PartDown& down) {
  Note("down", NameOf(order, int(order.kind_case())), down);
}

void LedTraffic::NoteHeard(const proto::PartUp& up) {
  if (up.has_report()) {
    Note("up", NameOf(up.report(), int(up.report().kind_case())), up);
  } else {
    Note("up", up.has_submitted() ? "submitted" : "present", up);
  }
}

}  // namespace sekisho::jobmanager
