// SPDX-License-Identifier: Apache-2.0
#include "agent/task/spec.h"

#include <algorithm>
#include <charconv>

#include "agent/task/record.h"
#include "common/utf8.h"

namespace sekisho::agent::task {
namespace {

constexpr int64_t kMaxGraceMs = (1 << 21) - 1;

// The one list of numeric and text fields, walked to write and to read.
template <typename Visit>
bool VisitSpec(Spec& spec, Visit visit) {
  return visit.Text("job", spec.job_id) && visit.Number("task", spec.task) &&
         visit.Text("boot", spec.boot_id) && visit.Text("account", spec.account) &&
         visit.Number("uid", spec.uid) && visit.Number("gid", spec.gid) &&
         visit.List("group", spec.groups) && visit.List("argument", spec.argument) &&
         visit.List("environment", spec.environment) && visit.Text("directory", spec.directory) &&
         visit.Number("umask", spec.umask) && visit.Text("stdin", spec.stdin_path) &&
         visit.Text("stdout", spec.stdout_path) && visit.Text("stderr", spec.stderr_path) &&
         visit.Number("has_input", spec.has_input) && visit.Number("append", spec.append_output) &&
         visit.Number("check_only", spec.check_only) && visit.Number("helper", spec.is_helper) &&
         visit.Text("launch", spec.launch) &&
         visit.Flag("await_release", spec.await_release) && visit.Flag("sync_late", spec.syncs_late) &&
         visit.List("wrapper", spec.wrapper) &&
         visit.Text("pmi_socket", spec.pmi_socket) &&
         visit.Number("wall_limit_ms", spec.wall_limit_ms) &&
         visit.Number("grace_ms", spec.grace_ms) && visit.Number("cpu_limit_s", spec.cpu_limit_s) &&
         visit.Number("memory_limit_mb", spec.memory_limit_mb) &&
         visit.Number("process_limit", spec.process_limit) &&
         visit.Text("token", spec.launch_token) && visit.Text("cgroup", spec.cgroup);
}

struct Writer {
  Fields& fields;

  bool Text(const char* key, const std::string& value) {
    fields.emplace_back(key, value);
    return true;
  }
  template <typename Integer>
  bool Number(const char* key, Integer value) {
    return Text(key, std::to_string(static_cast<long long>(value)));
  }
  bool Flag(const char* key, bool value) { return !value || Text(key, "1"); }
  bool List(const char* key, const std::vector<std::string>& values) {
    std::for_each(values.begin(), values.end(), [&](const auto& value) { Text(key, value); });
    return true;
  }
  bool List(const char* key, const std::vector<gid_t>& values) {
    std::for_each(values.begin(), values.end(), [&](gid_t value) { Number(key, value); });
    return true;
  }
};

struct Reader {
  const Fields& fields;

  bool Text(const char* key, std::string& value) {
    value = Get(fields, key);
    return true;
  }
  template <typename Integer>
  bool Number(const char* key, Integer& value) {
    const auto number = GetNumber(fields, key);
    if (!number || *number != static_cast<long long>(static_cast<Integer>(*number))) {
      return false;
    }
    value = static_cast<Integer>(*number);
    return true;
  }
  // Absent, as in records of earlier versions: false.
  bool Flag(const char* key, bool& value) {
    value = Get(fields, key) == "1";
    return true;
  }
  bool List(const char* key, std::vector<std::string>& values) {
    for (const auto& [name, value] : fields) {
      if (name == key) {
        values.push_back(value);
      }
    }
    return true;
  }
  bool List(const char* key, std::vector<gid_t>& values) {
    for (const auto& field : fields) {
      if (field.first == key) {
        const auto gid = GetNumber({field}, key);
        if (!gid || *gid < 0 || *gid > UINT32_MAX) {
          return false;
        }
        values.push_back(static_cast<gid_t>(*gid));
      }
    }
    return true;
  }
};

template <typename Visit>
bool VisitEnded(Ended& ended, Visit visit) {
  return visit.Number("code", ended.code) && visit.Number("signal", ended.signal) &&
         visit.Number("gram_code", ended.gram_code) && visit.Text("reason", ended.reason) &&
         visit.Number("time_ms", ended.time_ms) && visit.Number("cpu_ms", ended.cpu_ms) &&
         visit.Number("max_rss_kb", ended.max_rss_kb);
}

template <typename Visit>
bool VisitRunning(Running& running, Visit visit) {
  return visit.Number("supervisor", running.supervisor) && visit.Number("main", running.main) &&
         visit.Number("time_ms", running.time_ms);
}

bool IsOneOf(std::string_view text, std::string_view extra, size_t most) {
  return !text.empty() && text.size() <= most && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           extra.find(c) != std::string_view::npos;
  });
}

}  // namespace

int PackOrder(const Order& order) {
  const auto grace = static_cast<unsigned>(std::clamp<int64_t>(order.grace_ms, 0, kMaxGraceMs));
  return static_cast<int>(static_cast<unsigned>(order.command) |
                          (static_cast<unsigned>(order.signal) & 0x7f) << 3 | grace << 10);
}

Order UnpackOrder(int value) {
  const auto bits = static_cast<unsigned>(value);
  return {static_cast<Command>(bits & 7), static_cast<int>(bits >> 3 & 0x7f), bits >> 10};
}

std::string_view Name(Grouping grouping) {
  return grouping == Grouping::kV2 ? "v2" : grouping == Grouping::kV1 ? "v1" : "none";
}

std::optional<Grouping> ParseGrouping(std::string_view name) {
  for (const Grouping grouping : {Grouping::kV2, Grouping::kV1, Grouping::kNone}) {
    if (Name(grouping) == name) {
      return grouping;
    }
  }
  return std::nullopt;
}

std::string EncodeSpec(const Spec& spec) {
  Fields fields;
  Spec copy = spec;
  VisitSpec(copy, Writer{fields});
  fields.emplace_back("grouping", Name(spec.grouping));
  return Encode(fields);
}

std::optional<Spec> DecodeSpec(std::string_view bytes) {
  const auto fields = Decode(bytes);
  Spec spec;
  if (!fields || !VisitSpec(spec, Reader{*fields}) || !IsJobId(spec.job_id) || spec.task < 0) {
    return std::nullopt;
  }
  const auto grouping = ParseGrouping(Get(*fields, "grouping"));
  if (!grouping) {
    return std::nullopt;
  }
  spec.grouping = *grouping;
  return spec;
}

std::string EncodeRunning(const Running& running) {
  Fields fields;
  Running copy = running;
  VisitRunning(copy, Writer{fields});
  return Encode(fields);
}

std::optional<Running> DecodeRunning(std::string_view bytes) {
  const auto fields = Decode(bytes);
  Running running;
  if (!fields || !VisitRunning(running, Reader{*fields}) || running.supervisor <= 0) {
    return std::nullopt;
  }
  return running;
}

std::string EncodeEnded(const Ended& ended) {
  Fields fields;
  Ended copy = ended;
  VisitEnded(copy, Writer{fields});
  return Encode(fields);
}

std::optional<Ended> DecodeEnded(std::string_view bytes) {
  const auto fields = Decode(bytes);
  Ended ended;
  if (!fields || !VisitEnded(ended, Reader{*fields})) {
    return std::nullopt;
  }
  ended.reason = ToUtf8(ended.reason);  // it goes into a message: one bad byte would stop the node's stream
  return ended;
}

// An element of an array is JOB[INDEX].
bool IsJobId(std::string_view text) { return IsOneOf(text, "[]", 32); }

bool IsFileName(std::string_view text) {
  return IsOneOf(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ._-", 64) && text.front() != '.';
}

}  // namespace sekisho::agent::task
