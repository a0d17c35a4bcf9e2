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

// The stream that x-gass-cache://.../stdout, or stderr, is all of.
int CachedStream(std::string_view from) {
  return !IsCacheUrl(from) ? kNoStream : from.ends_with("/stdout") ? 0 : from.ends_with("/stderr") ? 1 : kNoStream;
}

}  // namespace

std::vector<Outgoing> OutgoingOf(const JobDescription& job, const Redirections& redirections) {
  std::vector<Outgoing> all;
  int number = 0;  // of the next
  for (const Transfer& transfer : job.file_stage_out) {
    const int stream = CachedStream(transfer.from);
    const std::string written = stream == kNoStream ? "" : WrittenByTasks(stream == 0 ? job.standard_output : job.standard_error);
    all.push_back({"file_stage_out", written.empty() ? stream : kNoStream, written.empty() ? transfer.from : written, transfer.to, number++});
  }
  const auto add = [&](const char* attribute, int stream, const std::vector<Destination>& destinations) {
    if (!WrittenByTasks(destinations).empty()) {
      return;
    }
    const std::optional<Redirection>& redirection = redirections[size_t(stream)];
    for (const Destination& destination : destinations) {
      if (!IsSent(destination.target)) {
        continue;
      }
      if (!redirection) {
        all.push_back({attribute, stream, "", destination.target, number});
      }
      ++number;
    }
    if (redirection) {
      int own = redirection->number;
      for (const std::string& to : redirection->to) {
        if (IsSent(to)) {
          all.push_back({attribute, stream, "", to, own++, redirection->position});
        }
      }
    }
  };
  add("stdout", 0, job.standard_output);
  add("stderr", 1, job.standard_error);
  return all;
}

int NextNumber(const JobDescription& job, const Redirections& redirections) {
  int next = int(OutgoingOf(job).size());
  for (const auto& redirection : redirections) {
    if (redirection) {
      next = std::max(next, redirection->number + int(std::count_if(redirection->to.begin(), redirection->to.end(), IsSent)));
    }
  }
  return next;
}

bool IsForClient(const Outgoing& item) {
  const Kind kind = ReadLocation(item.to).kind;
  return kind == Kind::kClient || (kind == Kind::kPath && item.attribute == "file_stage_out");
}

std::string WrittenByTasks(const std::vector<Destination>& stream) {
  return stream.size() == 1 && ReadLocation(stream[0].target).kind == Kind::kPath ? stream[0].target : "";
}

bool IsSent(const std::string& destination) {
  return DescriptorOf(ReadLocation(destination)) == 0 && destination != "/dev/null" && !IsCacheUrl(destination);
}

bool IsFile(const std::string& destination) {
  return IsSent(destination) && ReadLocation(destination).kind != Kind::kWeb;
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
