// SPDX-License-Identifier: Apache-2.0
#include "client/local/verb_rsl.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace sekisho::client {
namespace {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

Outcome Check(const std::string& source, const std::string& input = "",
              bool is_grammar_only = false, bool is_json = false) {
  std::istringstream in(input);
  std::ostringstream out, err;
  const int code = CheckRsl(source, is_grammar_only, is_json, {in, out, err});
  return {code, out.str(), err.str()};
}

Outcome Format(const std::string& source, bool is_one_line = false) {
  std::istringstream in;
  std::ostringstream out, err;
  const int code = FormatRsl(source, is_one_line, {in, out, err});
  return {code, out.str(), err.str()};
}

class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view text)
      : path_(std::filesystem::temp_directory_path() /
              ("rsl-" + std::to_string(getpid()) + ".rsl")) {
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(RslCheck, SaysOkOnStandardOutput) {
  const Outcome outcome = Check("-", "&(executable=$(HOME)/x)(count=4)\n");

  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "ok: a job\n");
  EXPECT_EQ(outcome.err, "");
}

TEST(RslCheck, SaysLineAndColumnOnStandardError) {
  const Outcome outcome = Check("-", "&(executable=x)\n (count=)\n");

  EXPECT_EQ(outcome.code, 64);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "2:9: expected a value, saw \")\" (GRAM error 48, BAD_RSL)\n");
}

TEST(RslCheck, PutsTheFileBeforeThePlace) {
  const TemporaryFile file("&(exectuable=x)");

  const Outcome outcome = Check(file.path());

  EXPECT_EQ(outcome.code, 64);
  EXPECT_EQ(outcome.err, file.path() +
                             ":1:3: expected a known attribute, saw \"exectuable\"; did you mean "
                             "\"executable\"? (GRAM error 1, PARAMETER_NOT_SUPPORTED)\n");
}

TEST(RslCheck, TakesTheTextItself) {
  EXPECT_EQ(Check("&(executable=x)").code, 0);
  EXPECT_EQ(Check("\n (* a comment *) &(executable=x)").code, 0);
  EXPECT_THAT(Check("(executable=x)").err, testing::StartsWith("1:1: expected \"&\""));
  EXPECT_EQ(Check("+(&(executable=x)(resourceManagerContact=a))(&(executable=x)"
                  "(resourceManagerContact=b))")
                .out,
            "ok: a job of 2 parts\n");
}

TEST(RslCheck, LooksOnlyAtTheGrammarOfWhatIsNoJobOrWhenAsked) {
  EXPECT_EQ(Check("&(a=\"\")").out, "ok: the grammar is right; no attribute of a job is in it\n");
  EXPECT_EQ(Check("+(a=1)(b=2)").code, 0);
  EXPECT_EQ(Check("&(count=none)", "", true).out, "ok: the grammar is right\n");
  EXPECT_EQ(Check("&(count=none)").code, 64);
}

TEST(RslCheck, WarnsOfWhatASiteWillRefuse) {
  const Outcome outcome = Check("&(executable=x)(name=x)");

  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, testing::StartsWith("1:17: name is not supported yet: "));
}

TEST(RslCheck, PrintsJsonForMachines) {
  const Outcome outcome = Check("&(executable=x)(count=none)", "", false, true);

  EXPECT_EQ(outcome.code, 64);
  const nlohmann::json report = nlohmann::json::parse(outcome.out);
  EXPECT_FALSE(report["ok"]);
  EXPECT_EQ(report["errors"][0]["column"], 23);
  EXPECT_EQ(report["errors"][0]["gram_code"], 14);
  EXPECT_EQ(report["errors"][0]["attribute"], "count");
}

TEST(RslCheck, NamesAFileThatCannotBeRead) {
  const Outcome outcome = Check("/nonexistent/job.rsl");

  EXPECT_EQ(outcome.code, 64);
  EXPECT_EQ(
      outcome.err,
      "/nonexistent/job.rsl: expected a readable file with RSL, saw: No such file or directory\n");
  EXPECT_EQ(Check("/").code, 64);
}

TEST(RslFormat, PrintsARelationALineOrOneLine) {
  EXPECT_EQ(Format("&(EXECUTABLE=x)(MaxTime=5)").out, "& (executable = x)\n  (max_time = 5)\n");
  EXPECT_EQ(Format("&(EXECUTABLE=x)(max_time=5)", true).out, "&(executable=x)(maxtime=5)\n");
  EXPECT_EQ(Format("&(x").code, 64);
}

TEST(RslVerb, RegistersItsSubcommands) {
  CLI::App app;
  int exit_code = -1;
  AddRslVerb(app, exit_code);

  testing::internal::CaptureStdout();
  app.parse("rsl format --one-line '&(executable=/bin/date)'");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "&(executable=/bin/date)\n");
  EXPECT_EQ(exit_code, 0);
  testing::internal::CaptureStderr();
  app.parse("rsl check '&(executable)'");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::StartsWith("1:13: expected \"=\""));
  EXPECT_EQ(exit_code, 64);
  EXPECT_THROW(app.parse("rsl"), CLI::ParseError);
}

}  // namespace
}  // namespace sekisho::client
