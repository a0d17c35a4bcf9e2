// SPDX-License-Identifier: Apache-2.0
#include "client/job/request.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "client/job/staged_files.h"
#include "common/refusal.h"
#include "rsl/evaluator.h"
#include "rsl/printer.h"

namespace sekisho::client {
namespace {

using rsl::PrintLiteral;

constexpr std::string_view kMark = "#SEKISHO";

void AddText(std::string& rsl, const char* attribute, const std::string& value) {
  if (!value.empty()) {
    rsl += fmt::format("({}={})", attribute, PrintLiteral(value));
  }
}
void AddTexts(std::string& rsl, const char* attribute, const std::vector<std::string>& values) {
  if (values.empty()) {
    return;
  }
  rsl += fmt::format("({}=", attribute);
  for (const std::string& value : values) {
    rsl += PrintLiteral(value) + " ";
  }
  rsl += ")";
}
void AddNumber(std::string& rsl, const char* attribute, const std::optional<int>& value) {
  if (value) {
    rsl += fmt::format("({}={})", attribute, *value);
  }
}

bool IsShell(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  constexpr std::array<std::string_view, 5> kShells = {"sh", "bash", "dash", "ksh", "zsh"};
  return std::find(kShells.begin(), kShells.end(), name) != kShells.end();
}

}  // namespace

absl::StatusOr<std::string> ToRsl(const JobOptions& options) {
  if (options.command.empty() || options.command[0].empty()) {
    return Refuse(absl::StatusCode::kInvalidArgument, 0, "no command: give RSL, or -- and a command with its arguments",
                  "e.g. sekisho run -r SITE -- /bin/hostname");
  }
  std::string rsl = "&";
  if (options.is_below_home) {
    rsl += fmt::format("(executable=$(HOME) # {})", PrintLiteral("/" + options.command[0]));
  } else {
    AddText(rsl, "executable",
            options.stages_executable ? rsl::kClientUrl + FullPath(options.command[0]) : options.command[0]);
  }
  if (options.command.size() > 1) {
    rsl += "(arguments=";
    for (size_t i = 1; i < options.command.size(); ++i) {
      rsl += i > 1 ? " " : "";
      rsl += PrintLiteral(options.command[i]);
    }
    rsl += ")";
  }
  AddNumber(rsl, "count", options.count);
  AddNumber(rsl, "host_count", options.host_count);
  AddText(rsl, "job_type", options.job_type);
  AddText(rsl, "directory", options.directory);
  if (!options.environment.empty()) {
    rsl += "(environment=";
    for (const std::string& entry : options.environment) {
      const auto equals = entry.find('=');
      if (equals == std::string::npos || equals == 0) {
        return absl::InvalidArgumentError(
            fmt::format("--env: expected NAME=VALUE, saw '{}'", entry));
      }
      rsl += fmt::format("({} {})", PrintLiteral(entry.substr(0, equals)),
                         PrintLiteral(entry.substr(equals + 1)));
    }
    rsl += ")";
  }
  AddText(rsl, "stdin", options.standard_input);
  AddText(rsl, "stdout", options.standard_output);
  AddText(rsl, "stderr", options.standard_error);
  AddText(rsl, "queue", options.queue);
  AddText(rsl, "project", options.project);
  AddNumber(rsl, "max_wall_time", options.max_wall_time);
  AddNumber(rsl, "max_memory", options.max_memory);
  if (!options.stage_in.empty()) {
    rsl += "(file_stage_in=";
    for (const std::string& file : options.stage_in) {
      rsl += StageInPair(file);
    }
    rsl += ")";
  }
  AddText(rsl, "array", options.array);
  AddTexts(rsl, "after", options.after);
  AddTexts(rsl, "after_any", options.after_any);
  AddText(rsl, "hold", options.is_held ? "yes" : "");
  for (const std::string& clause : options.clauses) {
    rsl += clause;
  }
  return rsl;
}

absl::StatusOr<std::vector<std::string>> SplitWords(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else if (c == '\\' && quote == '"' && i + 1 < line.size()) {
        word += line[++i];
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == '\\' && i + 1 < line.size()) {
      word += line[++i];
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      if (in_word) {
        words.push_back(std::exchange(word, {}));
        in_word = false;
      }
    } else if (c == '#' && !in_word) {
      break;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0) {
    return absl::InvalidArgumentError(fmt::format("expected a closing {}, saw the end of the line", quote));
  }
  if (in_word) {
    words.push_back(word);
  }
  return words;
}

absl::StatusOr<Script> ParseScript(const std::string& text, const std::string& name,
                                   const std::vector<std::string>& script_arguments) {
  if (text.size() > kScriptBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("{}: expected a script of at most {} bytes, saw {}", name, kScriptBytesMax, text.size()));
  }
  if (text.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(
        fmt::format("{}: expected a text, saw a NUL byte; to run a program write: submit -r SITE -- {}", name,
                    name));
  }
  std::string shell = "/bin/sh";
  Script script;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const auto wrong = [&](const std::string& what) {
      return Refuse(absl::StatusCode::kInvalidArgument, 0, fmt::format("{}:{}: {}", name, number, what),
                    fmt::format("correct it there; a program that is no script of a shell runs with: submit -r SITE -- {}",
                                name));
    };
    if (number == 1 && line.rfind("#!", 0) == 0) {
      const auto words = SplitWords(line.substr(2));
      if (!words.ok() || words->size() != 1 || !IsShell(words->front())) {
        return wrong(fmt::format("expected #! and a shell (sh, bash, dash, ksh, zsh), saw '{}'", line));
      }
      shell = words->front();
    } else if (line.rfind(kMark, 0) == 0 &&
               (line.size() == kMark.size() || line[kMark.size()] == ' ' || line[kMark.size()] == '\t')) {
      const auto words = SplitWords(line.substr(kMark.size()));
      if (!words.ok()) {
        return wrong(std::string(words.status().message().data(), words.status().message().size()));
      }
      script.arguments.insert(script.arguments.end(), words->begin(), words->end());
    } else if (!line.empty() && line[0] != '#') {
      break;  // as every batch system has it: options stand before the first command
    }
  }
  script.command = {shell, "-c", text, name};
  script.command.insert(script.command.end(), script_arguments.begin(), script_arguments.end());
  return script;
}

}  // namespace sekisho::client
