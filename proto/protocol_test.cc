// SPDX-License-Identifier: Apache-2.0
// What programs of earlier versions say is still understood: everything that their list in tests/data names is there, under
// its number, with its type.  A version's own list is written by SEKISHO_WRITE_PROTOCOL=FILE.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include "proto/allocation.pb.h"
#include "proto/coalloc.pb.h"
#include "proto/files.pb.h"
#include "proto/handover.pb.h"
#include "proto/job.pb.h"
#include "proto/job_service.pb.h"
#include "proto/links.pb.h"
#include "proto/nodes.pb.h"
#include "proto/queue.pb.h"
#include "proto/signed_parts.pb.h"
#include "proto/site_state.pb.h"
#include "proto/world.pb.h"

namespace sekisho::proto {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;
using Lines = std::set<std::string>;

void ListEnum(const EnumDescriptor& values, Lines& lines) {
  for (int i = 0; i < values.value_count(); ++i) {
    lines.insert(fmt::format("value {} {}", values.value(i)->full_name(), values.value(i)->number()));
  }
}

std::string TypeOf(const FieldDescriptor& field) {
  const std::string type = field.message_type() != nullptr ? field.message_type()->full_name()
                           : field.enum_type() != nullptr  ? field.enum_type()->full_name()
                                                           : field.type_name();
  return field.is_repeated() ? "repeated " + type : type;
}

void ListMessage(const Descriptor& message, Lines& lines) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    lines.insert(fmt::format("field {} {} {}", field.full_name(), field.number(), TypeOf(field)));
  }
  for (int i = 0; i < message.nested_type_count(); ++i) {
    ListMessage(*message.nested_type(i), lines);
  }
  for (int i = 0; i < message.enum_type_count(); ++i) {
    ListEnum(*message.enum_type(i), lines);
  }
}

void ListFile(const FileDescriptor& file, Lines& lines) {
  for (int i = 0; i < file.message_type_count(); ++i) {
    ListMessage(*file.message_type(i), lines);
  }
  for (int i = 0; i < file.enum_type_count(); ++i) {
    ListEnum(*file.enum_type(i), lines);
  }
  for (int i = 0; i < file.service_count(); ++i) {
    for (int j = 0; j < file.service(i)->method_count(); ++j) {
      const MethodDescriptor& call = *file.service(i)->method(j);
      lines.insert(fmt::format("call {} {}{} -> {}{}", call.full_name(), call.client_streaming() ? "stream " : "",
                               call.input_type()->full_name(), call.server_streaming() ? "stream " : "",
                               call.output_type()->full_name()));
    }
  }
}

Lines OfToday() {
  Lines lines;
  for (const Descriptor* const one :
       {DecideRequest::descriptor(), CoallocRequest::descriptor(), UploadRequest::descriptor(), Handover::descriptor(),
        Exit::descriptor(), Update::descriptor(), LinksRequest::descriptor(), TaskKey::descriptor(),
        QueueRequest::descriptor(), SignedParts::descriptor(), SiteWatchRequest::descriptor(),
        LeadRequest::descriptor()}) {  // one of each file
    ListFile(*one->file(), lines);
  }
  return lines;
}

TEST(ProtocolTest, SaysAllThatTheFirstVersionSaid) {
  const Lines today = OfToday();
  if (const char* const path = std::getenv("SEKISHO_WRITE_PROTOCOL")) {
    std::ofstream out(path);
    std::for_each(today.begin(), today.end(), [&](const std::string& line) { out << line << "\n"; });
  }

  const char* const source = std::getenv("SEKISHO_SOURCE");
  ASSERT_NE(source, nullptr);
  std::ifstream first(std::string(source) + "/tests/data/protocol-1.txt");
  int count = 0;
  for (std::string line; std::getline(first, line); ++count) {
    EXPECT_TRUE(today.count(line) == 1) << "no longer there: " << line;
  }
  EXPECT_GT(count, 500);
}

}  // namespace
}  // namespace sekisho::proto
