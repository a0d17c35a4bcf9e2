// SPDX-License-Identifier: Apache-2.0
// The command line of sekisho-pm-bench.
#include "transport/pm/bench_arguments.h"

#include <stdio.h>
#include <string.h>

#include "transport/pm/number.h"

namespace sekisho::pm {
namespace {

using Bench = BenchArguments::Bench;

constexpr int kUsage = 64;
constexpr char kHelp[] =
    "usage: sekisho pm bench --against tcp [--rounds N] [--ms N] [--tail-seconds N]\n"
    "                        [--only WORDS] [--veth] [--mtu BYTES] [--explain] [--json]\n"
    "       sekisho pm bench --near [--rounds N] [--ms N] [--only WORDS] [--explain]\n"
    "       sekisho pm bench [--rounds N] [--ms N] [--only WORDS] [--datagram BYTES]\n"
    "                        [--ring BYTES] [--no-offload] [--header-tag-only] [--one-thread]\n"
    "Measures PM and TCP in turns: all goals that one machine can judge (--against tcp), memory\n"
    "against UDP inside a host (--near), or round trips and bandwidth, both spinning.\n"
    "Manual: docs/operations/pm-goals.md, \"What the rows mean\"\n";

struct Word {
  const char* name;
  void (*set)(BenchArguments& arguments);
};

constexpr Word kWords[] = {
    {"--no-offload", [](BenchArguments& a) { a.settings.offload = false; }},
    {"--one-thread", [](BenchArguments& a) { a.bench = Bench::kOneThread; }},
    {"--near", [](BenchArguments& a) { a.bench = Bench::kNear; }},
    {"--header-tag-only", [](BenchArguments& a) { a.settings.payload_tag = false; }},
    {"--veth", [](BenchArguments& a) { a.settings.has_cable = true; }},
    {"--json", [](BenchArguments& a) { a.settings.is_json = true; }},
    {"--explain", [](BenchArguments& a) { a.settings.explains = true; }},
};

struct Number {
  const char* name;
  unsigned long least, most;
  void (*set)(Settings& settings, unsigned long number);
};

constexpr Number kNumbers[] = {
    {"--rounds", 1, 10'000,
     [](Settings& s, unsigned long number) { s.rounds = static_cast<int>(number); }},
    {"--ms", 10, 3'600'000,
     [](Settings& s, unsigned long number) { s.time = static_cast<Nanos>(number) * kMillisecond; }},
    // As many messages as the table of their delays has room for.
    {"--tail-seconds", 1, 100,
     [](Settings& s, unsigned long number) { s.tail_time = static_cast<Nanos>(number) * kSecond; }},
    {"--mtu", 1280, 65'535,
     [](Settings& s, unsigned long number) { s.mtu = static_cast<int>(number); }},
    {"--datagram", kDatagramBase, kDatagramMax,
     [](Settings& s, unsigned long number) {
       s.datagram_max = static_cast<std::uint32_t>(number);
     }},
    {"--ring", 4096, 1ul << 30,
     [](Settings& s, unsigned long number) { s.ring = static_cast<std::uint32_t>(number); }},
};

bool TakeWord(const char* word, BenchArguments& arguments) {
  for (const Word& known : kWords) {
    if (strcmp(word, known.name) != 0) continue;
    known.set(arguments);
    return true;
  }
  return false;
}

// A name and its value; what is wrong is said.
bool TakePair(const char* name, const char* value, BenchArguments& arguments) {
  for (const Number& known : kNumbers) {
    if (strcmp(name, known.name) != 0) continue;
    unsigned long number;
    if (!ReadNumber(value, known.least, known.most, number)) {
      fprintf(stderr, "sekisho-pm-bench: %s%s%s: expected a number from %lu to %lu\n", name,
              value == nullptr ? "" : " ", value == nullptr ? "" : value, known.least, known.most);
      return false;
    }
    known.set(arguments.settings, number);
    return true;
  }
  if (strcmp(name, "--only") == 0) {
    if (value == nullptr) {
      fprintf(stderr, "sekisho-pm-bench: --only: expected words of the rows' names\n");
      return false;
    }
    arguments.settings.only = value;
    return true;
  }
  if (strcmp(name, "--against") == 0 && value != nullptr && strcmp(value, "tcp") == 0) {
    arguments.bench = Bench::kGoals;
    return true;
  }
  if (strcmp(name, "--against") == 0) {
    fprintf(stderr, "sekisho-pm-bench: --against tcp is all there is\n");
  } else {
    fprintf(stderr, "sekisho-pm-bench: what is '%s'?\n", name);
  }
  return false;
}

}  // namespace

bool ReadBenchArguments(int argc, char** argv, BenchArguments& arguments, int& code) {
  for (int i = 1; i < argc; ++i) {
    const char* const word = argv[i];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
      fputs(kHelp, stdout);
      code = 0;
      return false;
    }
    if (TakeWord(word, arguments)) continue;
    if (!TakePair(word, i + 1 < argc ? argv[i + 1] : nullptr, arguments)) {
      fputs("  -> sekisho pm bench --help\n", stderr);
      code = kUsage;
      return false;
    }
    ++i;
  }
  return true;
}

}  // namespace sekisho::pm
