// SPDX-License-Identifier: Apache-2.0
#include "rsl/outgoing.h"

#include <algorithm>

#include "rsl/location.h"

namespace sekisho::rsl {
namespace {

using Kind = Location::Kind;

// 1 or 2: the client's own standard output or error; 0: neither.
int DescriptorOf(const Location& location) {
  return location.kind != Kind::kClient       ? 0
         : location.path == "/dev/stdout" ? 1
         : location.path == "/dev/stderr" ? 2
                                          : 0;
}

bool IsSent(const Destination& destination) {
  const Location location = ReadLocation(destination.target);
  return DescriptorOf(location) == 0 && destination.target != "/dev/null" && !IsCacheUrl(destination.target);
}

// The stream that x-gass-cache://.../stdout, or stderr, is all of.
int CachedStream(std::string_view from) {
  return !IsCacheUrl(from) ? kNoStream : from.ends_with("/stdout") ? 0 : from.ends_with("/stderr") ? 1 : kNoStream;
}

}  // namespace

std::vector<Outgoing> OutgoingOf(const JobDescription& job) {
  std::vector<Outgoing> all;
  for (const Transfer& transfer : job.file_stage_out) {
    const int stream = CachedStream(transfer.from);
    const std::string written = stream == kNoStream ? "" : WrittenByTasks(stream == 0 ? job.standard_output : job.standard_error);
    all.push_back({"file_stage_out", written.empty() ? stream : kNoStream, written.empty() ? transfer.from : written, transfer.to});
  }
  const auto add = [&](const char* attribute, int stream, const std::vector<Destination>& destinations) {
    if (!WrittenByTasks(destinations).empty()) {
      return;
    }
    for (const Destination& destination : destinations) {
      if (IsSent(destination)) {
        all.push_back({attribute, stream, "", destination.target});
      }
    }
  };
  add("stdout", 0, job.standard_output);
  add("stderr", 1, job.standard_error);
  return all;
}

bool IsForClient(const Outgoing& item) {
  const Kind kind = ReadLocation(item.to).kind;
  return kind == Kind::kClient || (kind == Kind::kPath && item.attribute == "file_stage_out");
}

std::string WrittenByTasks(const std::vector<Destination>& stream) {
  return stream.size() == 1 && ReadLocation(stream[0].target).kind == Kind::kPath ? stream[0].target : "";
}

std::array<std::set<int>, kStreams> ShownAs(const JobDescription& job) {
  std::array<std::set<int>, kStreams> shown;
  for (int stream = 0; stream < kStreams; ++stream) {
    const std::vector<Destination>& destinations = stream == 0 ? job.standard_output : job.standard_error;
    if (destinations.empty()) {
      shown[size_t(stream)] = {stream + 1};
    }
    for (const Destination& destination : destinations) {
      if (const int descriptor = DescriptorOf(ReadLocation(destination.target)); descriptor != 0) {
        shown[size_t(stream)].insert(descriptor);
      }
    }
  }
  return shown;
}

}  // namespace sekisho::rsl
