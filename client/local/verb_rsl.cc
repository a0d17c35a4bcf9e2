// SPDX-License-Identifier: Apache-2.0
// sekisho rsl check|format.
#include "client/local/verb_rsl.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "rsl/check.h"
#include "rsl/gram_errors.h"
#include "rsl/parser.h"
#include "rsl/printer.h"

namespace sekisho::client {
namespace {

constexpr int kUsageError = 64;

struct Source {
  std::string text;
  std::string prefix;  // "FILE:" of a file's messages
};

// One byte more than the parser takes, so that it is the parser who says what is too long.
std::string ReadUpToLimit(std::istream& in) {
  std::string text(rsl::kTextSizeMax + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

std::optional<Source> Read(const std::string& source, RslStreams streams) {
  if (source == "-") {
    return Source{ReadUpToLimit(streams.in), ""};
  }
  const size_t start = source.find_first_not_of(" \t\r\n");
  if (start != std::string::npos &&
      std::string_view("&+|(").find(source[start]) != std::string_view::npos) {
    return Source{source, ""};
  }
  errno = 0;
  std::ifstream file(source);
  if (file) {
    std::string text = ReadUpToLimit(file);
    if (!file.bad()) {
      return Source{std::move(text), source + ":"};
    }
  }
  streams.err << fmt::format("{}: expected a readable file with RSL, saw: {}\n", source,
                             std::strerror(errno));
  return std::nullopt;
}

nlohmann::json ToJson(const rsl::Error& error) {
  return {{"line", error.where.line},     {"column", error.where.column},
          {"gram_code", error.gram_code}, {"gram_name", rsl::GramErrorName(error.gram_code)},
          {"attribute", error.attribute}, {"message", error.message},
          {"remedy", error.remedy}};
}

nlohmann::json ToJson(const rsl::CheckReport& report) {
  nlohmann::json errors = nlohmann::json::array();
  nlohmann::json warnings = nlohmann::json::array();
  if (report.error) {
    errors.push_back(ToJson(*report.error));
  }
  for (const rsl::Error& warning : report.warnings) {
    warnings.push_back(ToJson(warning));
  }
  return {{"ok", !report.error},
          {"jobs", report.jobs.size()},
          {"errors", std::move(errors)},
          {"warnings", std::move(warnings)}};
}

// What a good text asks for, in a line.
std::string Summary(const rsl::CheckReport& report, bool is_grammar_only) {
  if (report.jobs.empty()) {
    return is_grammar_only ? "ok: the grammar is right"
                           : "ok: the grammar is right; no attribute of a job is in it";
  }
  if (report.jobs.size() > 1 || report.jobs[0].part) {
    return fmt::format("ok: a job of {} {}", report.jobs.size(),
                       report.jobs.size() == 1 ? "part" : "parts");
  }
  return "ok: a job";
}

}  // namespace

int CheckRsl(const std::string& source, bool is_grammar_only, bool is_json, RslStreams streams) {
  const std::optional<Source> read = Read(source, streams);
  if (!read) {
    return kUsageError;
  }
  const rsl::CheckReport report =
      rsl::Check(read->text, is_grammar_only ? rsl::CheckDepth::kGrammar : rsl::CheckDepth::kJob);

  if (is_json) {
    streams.out << ToJson(report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
                << '\n';
    return report.error ? kUsageError : 0;
  }
  for (const rsl::Error& warning : report.warnings) {
    streams.err << read->prefix << warning.ToString() << '\n';
  }
  if (report.error) {
    streams.err << read->prefix << report.error->ToString() << '\n';
    return kUsageError;
  }
  streams.out << Summary(report, is_grammar_only) << '\n';
  return 0;
}

int FormatRsl(const std::string& source, bool is_one_line, RslStreams streams) {
  const std::optional<Source> read = Read(source, streams);
  if (!read) {
    return kUsageError;
  }
  const rsl::Result<rsl::Spec> spec = rsl::Parse(read->text);
  if (!spec.ok()) {
    streams.err << read->prefix << spec.error().ToString() << '\n';
    return kUsageError;
  }
  streams.out << (is_one_line ? rsl::Print(*spec) + '\n' : rsl::Format(*spec));
  return 0;
}

void AddRslVerb(CLI::App& app, int& exit_code) {
  struct Options {
    std::string source = "-";
    bool is_grammar_only = false;
    bool is_json = false;
    bool is_one_line = false;
  };
  const auto options = std::make_shared<Options>();  // lives as long as the callbacks
  constexpr const char* kSource = "File, - for standard input, or the RSL itself: &(...)";

  CLI::App* rsl = app.add_subcommand("rsl", "Check or format a job's RSL (needs no credential)");
  rsl->require_subcommand(1);

  CLI::App* check = rsl->add_subcommand(
      "check",
      "Say whether the RSL is good: grammar, names, values, variables.\n"
      "Errors come as [FILE:]LINE:COL: what was expected, what was seen; exit code 64.");
  check->add_option("FILE", options->source, kSource);
  check->add_flag("--syntax", options->is_grammar_only, "Check the grammar only");
  check->add_flag("--json", options->is_json, "Print the findings as JSON");
  check->callback([options, &exit_code] {
    exit_code = CheckRsl(options->source, options->is_grammar_only, options->is_json,
                         {std::cin, std::cout, std::cerr});
  });

  CLI::App* format = rsl->add_subcommand(
      "format",
      "Print the RSL with a relation a line and known names as documented; drops comments");
  format->add_option("FILE", options->source, kSource);
  format->add_flag("--one-line", options->is_one_line, "Print the canonical text in one line");
  format->callback([options, &exit_code] {
    exit_code = FormatRsl(options->source, options->is_one_line, {std::cin, std::cout, std::cerr});
  });
}

}  // namespace sekisho::client
