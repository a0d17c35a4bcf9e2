// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target where there is no libFuzzer: its corpus first, then changed pieces of it until the time is over.  It
// knows nothing of coverage; what it finds, it finds in every run of the tests, of any compiler.
//
//   TARGET SECONDS FOUND [CORPUS]      FOUND: the file that gets the input at which the program dies
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr size_t kSizeMost = 64 << 10;

const char* found_path;
std::string input;  // the one that runs

void KeepInput(int number) {
  const int fd = open(found_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd >= 0 && write(fd, input.data(), input.size()) >= 0) {
    constexpr char kText[] = "dies of an input, which is kept beside the test\n";
    (void)!write(STDERR_FILENO, kText, sizeof kText - 1);
  }
  std::signal(number, SIG_DFL);
  raise(number);
}

void Run() { LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size()); }

std::vector<std::string> Read(const char* corpus) {
  std::vector<std::string> all = {""};
  if (corpus != nullptr) {
    for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
      std::ifstream file(entry.path(), std::ios::binary);
      all.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  }
  return all;
}

class Changer {
 public:
  explicit Changer(std::vector<std::string> corpus) : corpus_(std::move(corpus)) {}

  std::string Next() {
    std::string text = Any();
    for (size_t times = 1 + Below(6); times > 0; --times) {
      ChangeOnce(text);
    }
    text.resize(std::min(text.size(), kSizeMost));
    return text;
  }

 private:
  size_t Below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random_); }
  const std::string& Any() { return corpus_[Below(corpus_.size())]; }

  void ChangeOnce(std::string& text) {
    const size_t at = Below(text.size() + 1);
    const size_t size = Below(std::min<size_t>(text.size() - at, 32) + 1);
    switch (Below(6)) {
      case 0:
        text.insert(at, 1, char(Below(256)));
        break;
      case 1:
        text.erase(at, size);
        break;
      case 2:
        text.insert(at, text.substr(at, size));
        break;
      case 3: {
        const std::string& other = Any();
        text.replace(at, size, other.substr(Below(other.size() + 1), Below(64)));
        break;
      }
      case 4:  // borders of counts and lengths
        text.replace(at, size, size, "\0\x7f\x80\xff"[Below(4)]);
        break;
      default:
        if (at < text.size()) {
          text[at] = char(uint8_t(text[at]) ^ (1U << Below(8)));
        }
    }
  }

  std::mt19937_64 random_{20'040'117};  // the same inputs each time, as far as they get
  const std::vector<std::string> corpus_;
};

}  // namespace

int main(int count, char** words) {
  if (count < 3) {
    std::fprintf(stderr, "usage: %s SECONDS FOUND [CORPUS]\n", words[0]);
    return 64;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(words[1]));
  found_path = words[2];
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    std::signal(number, KeepInput);
  }
  const std::vector<std::string> corpus = Read(count > 3 ? words[3] : nullptr);
  for (const std::string& text : corpus) {
    input = text;
    Run();
  }
  Changer changer(corpus);
  size_t runs = corpus.size();
  for (; std::chrono::steady_clock::now() < end; ++runs) {
    input = changer.Next();
    Run();
  }
  std::printf("%zu inputs\n", runs);
}
