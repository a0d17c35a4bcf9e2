// SPDX-License-Identifier: Apache-2.0
// What pm.h declares, libpm.so exports and pm.3 explains: the same.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace {

std::string Folder() {
  const char* source = getenv("SEKISHO_SOURCE");
  return std::string(source != nullptr ? source : ".") + "/transport/pm/";
}

std::string Read(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// What it says and how it ends; "missing" if there is no such program.
std::string OutputOf(const std::string& program, const std::string& arguments) {
  if (system(("command -v " + program + " >/dev/null 2>&1").c_str()) != 0) return "missing";
  FILE* const pipe = popen((program + " " + arguments).c_str(), "r");
  std::string text;
  for (int c; (c = fgetc(pipe)) != EOF;) text.push_back(static_cast<char>(c));
  if (const int status = pclose(pipe); status != 0) text += "status " + std::to_string(status);
  return text;
}

std::set<std::string> Functions() {
  const std::string text = Read(Folder() + "pm.h");
  const std::regex declaration("PM_API int (\\w+)\\(");
  std::set<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), declaration), end; it != end; ++it) {
    names.insert((*it)[1]);
  }
  EXPECT_GT(names.size(), 30u);
  return names;
}

TEST(Manual, NamesEveryFunctionThatTheLibraryExports) {
  const char* bin = getenv("SEKISHO_BIN");
  const std::string library =
      std::string(bin != nullptr ? bin : "build/release/bin") + "/libpm.so.0";
  void* const loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(loaded, nullptr) << dlerror();
  const std::string page = Read(Folder() + "pm.3");
  for (const std::string& name : Functions()) {
    EXPECT_NE(dlsym(loaded, name.c_str()), nullptr) << name;
    EXPECT_NE(page.find("int " + name + "("), std::string::npos) << name << " is not in pm.3";
  }
  const std::regex synopsis("\"int (\\w+)\\(");
  for (std::sregex_iterator it(page.begin(), page.end(), synopsis), end; it != end; ++it) {
    EXPECT_EQ(Functions().count((*it)[1]), 1u) << (*it)[1] << " is not in pm.h";
  }
}

TEST(Manual, IsRenderedWithoutAWarning) {
  const std::string groff = OutputOf("groff", "-man -ww -z -Tutf8 " + Folder() + "pm.3 2>&1");
  const std::string man =
      OutputOf("man", "--warnings -E UTF-8 -l " + Folder() + "pm.3 2>&1 >/dev/null");
  if (groff == "missing" && man == "missing") GTEST_SKIP() << "neither groff nor man";
  if (groff != "missing") {
    EXPECT_EQ(groff, "");
  }
  if (man != "missing") {
    EXPECT_EQ(man, "");
  }
}

TEST(Manual, TheHeaderIsC99) {
  const std::string out =
      OutputOf("cc", "-std=c99 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c " + Folder() +
                         "pm.h 2>&1");
  if (out == "missing") GTEST_SKIP() << "no C compiler";
  EXPECT_EQ(out, "");
}

}  // namespace
