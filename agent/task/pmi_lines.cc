// SPDX-License-Identifier: Apache-2.0
#include "agent/task/pmi_lines.h"

#include <charconv>

namespace sekisho::agent::task {
namespace {

constexpr size_t kLineMost = 8192;           // with its end, as the agent has it
constexpr size_t kUnansweredMost = 64 << 10;  // few lines get no answer, and none but one waits for it
constexpr std::string_view kRefused = "end";  // in place of a number

}  // namespace

void PmiLines::Connect() {
  from_agent_.clear();
  to_agent_ = greeting_ + " " + std::to_string(first_) + "\n" + unanswered_;
}

void PmiLines::TakeFromRank(std::string_view bytes) {
  if (is_refused_) {
    return;
  }
  from_rank_ += bytes;
  size_t whole = 0;
  for (size_t end = 0; (end = from_rank_.find('\n', whole)) != std::string::npos; whole = end + 1, ++next_) {
    if (end + 1 - whole > kLineMost) {
      return Refuse();
    }
  }
  const std::string lines = from_rank_.substr(0, whole);
  unanswered_ += lines;
  to_agent_ += lines;
  from_rank_.erase(0, whole);
  if (from_rank_.size() >= kLineMost) {
    Refuse();
  }
}

std::string PmiLines::TakeFromAgent(std::string_view bytes) {
  from_agent_ += bytes;
  std::string answers;
  size_t at = 0;
  for (size_t end = 0; (end = from_agent_.find('\n', at)) != std::string::npos; at = end + 1) {
    std::string_view line(from_agent_.data() + at, end - at);
    if (line == kRefused) {
      Refuse();
      continue;
    }
    uint64_t number = 0;
    const char* const text = std::from_chars(line.data(), line.data() + line.size(), number).ptr;
    if (text == line.data()) {  // an agent of before, which counts nothing
      number = next_ - 1;
    } else if (text != line.data() + line.size()) {
      line.remove_prefix(static_cast<size_t>(text - line.data()) + 1);
    }
    Answered(number);
    answers += line;
    answers += '\n';
  }
  from_agent_.erase(0, at);
  return answers;
}

void PmiLines::Answered(uint64_t number) {
  size_t at = 0;
  for (; first_ <= number && at < unanswered_.size(); ++first_) {
    at = unanswered_.find('\n', at) + 1;
  }
  unanswered_.erase(0, at);
}

void PmiLines::Refuse() {
  is_refused_ = true;
  from_rank_.clear();
  unanswered_.clear();
  to_agent_.clear();
}

bool PmiLines::IsFull() const { return unanswered_.size() > kUnansweredMost; }

}  // namespace sekisho::agent::task
