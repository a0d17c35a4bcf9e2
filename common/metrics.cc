// SPDX-License-Identifier: Apache-2.0
#include "common/metrics.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <unistd.h>

#include "common/version.h"

namespace sekisho {
namespace {

std::string Escaped(const std::string& value) {
  std::string escaped;
  for (const char c : value) {
    if (c == '\\' || c == '"') {
      escaped += '\\';
      escaped += c;
    } else if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// Fields of /proc/self/stat from the third on: those before may hold blanks.
std::vector<double> StatFields() {
  std::ifstream file("/proc/self/stat");
  const std::string line((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::istringstream rest(line.substr(std::min(line.size(), line.rfind(')') + 4)));
  std::vector<double> fields(3, 0);
  for (double value = 0; rest >> value;) {
    fields.push_back(value);
  }
  fields.resize(std::max<size_t>(fields.size(), 25), 0);
  return fields;
}

double BootTime() {
  std::ifstream file("/proc/stat");
  for (std::string word; file >> word;) {
    double value = 0;
    if (word == "btime" && file >> value) {
      return value;
    }
  }
  return 0;
}

}  // namespace

void Metrics::Add(const char* kind, const std::string& name, std::string_view help, double value,
                  const Labels& labels) {
  if (name != last_name_) {
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, kind);
    last_name_ = name;
  }
  text_ += name;
  for (size_t i = 0; i < labels.size(); ++i) {
    text_ += fmt::format("{}{}=\"{}\"", i == 0 ? '{' : ',', labels[i].first, Escaped(labels[i].second));
  }
  text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", value);
}

void Metrics::AddProcess() {
  const std::vector<double> stat = StatFields();  // numbered from 1 in proc(5), from 0 here
  const double ticks = double(sysconf(_SC_CLK_TCK));
  std::error_code error;
  const auto open = std::distance(std::filesystem::directory_iterator("/proc/self/fd", error), {});
  Add("counter", "process_cpu_seconds_total", "Processor time, user and system.", (stat[13] + stat[14]) / ticks, {});
  Add("gauge", "process_resident_memory_bytes", "Resident memory.", stat[23] * double(sysconf(_SC_PAGESIZE)), {});
  Add("gauge", "process_virtual_memory_bytes", "Virtual memory.", stat[22], {});
  Add("gauge", "process_start_time_seconds", "When it was started, seconds since 1970.", BootTime() + stat[21] / ticks,
      {});
  Add("gauge", "process_threads", "Threads.", stat[19], {});
  Add("gauge", "process_open_fds", "Open descriptors.", double(open), {});
  Add("gauge", "sekisho_build_info", "1; the label says which version runs.", 1,
      {{"daemon", daemon_}, {"version", kVersion}});
}

std::string AnswerHttp(std::string_view request, const std::function<std::string()>& text) {
  const std::string_view line = request.substr(0, request.find("\r\n"));
  const auto page = [](const char* status, const char* type, const std::string& body) {
    return fmt::format(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status, type,
        body.size(), body);
  };
  if (line.starts_with("GET /metrics ") || line.starts_with("GET /metrics?")) {
    return page("200 OK", "text/plain; version=0.0.4; charset=utf-8", text());
  }
  return line.starts_with("GET ") ? page("404 Not Found", "text/plain", "there is /metrics\n")
                                  : page("405 Method Not Allowed", "text/plain", "GET /metrics\n");
}

}  // namespace sekisho
