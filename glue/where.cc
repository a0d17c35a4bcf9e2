// SPDX-License-Identifier: Apache-2.0
#include "glue/where.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "glue/platform.h"

namespace sekisho::glue {
namespace {

constexpr int kMostNested = 100;
constexpr size_t kMostBytes = 16 * 1024;

int Compare(int64_t one, int64_t other) { return one < other ? -1 : one > other ? 1 : 0; }

std::optional<int64_t> ToNumber(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

struct Where::Node {
  enum class Kind { kAnd, kOr, kNot, kCompare } kind = Kind::kCompare;
  std::vector<std::unique_ptr<Node>> children;
  std::string name, op, value;  // op empty: the name alone, a truth
};

Where::Where() = default;
Where::~Where() = default;
Where::Where(Where&&) noexcept = default;
Where& Where::operator=(Where&&) noexcept = default;

class WhereParser {
 public:
  explicit WhereParser(std::string_view text) : text_(text) {}

  absl::StatusOr<Where> Parse() {
    if (text_.size() > kMostBytes) {
      return absl::InvalidArgumentError(fmt::format("expected at most {} bytes", kMostBytes));
    }
    Where where;
    where.root_ = Or(0);
    Skip();
    if (where.root_ != nullptr && at_ < text_.size()) {
      Expected("&&, || or the end");
      where.root_ = nullptr;
    }
    if (where.root_ == nullptr) {
      return absl::InvalidArgumentError(error_);
    }
    return where;
  }

 private:
  using Node = Where::Node;
  using NodePointer = std::unique_ptr<Node>;

  NodePointer Expected(const std::string& what) {
    if (error_.empty()) {
      const std::string_view rest = text_.substr(std::min(at_, text_.size()), 20);
      error_ = fmt::format("column {}: expected {}, saw {}", at_ + 1, what,
                           rest.empty() ? "the end" : fmt::format("'{}'", rest));
    }
    return nullptr;
  }
  void Skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) {
      ++at_;
    }
  }
  bool Take(std::string_view token) {
    Skip();
    if (text_.substr(at_).starts_with(token)) {
      at_ += token.size();
      return true;
    }
    return false;
  }

  NodePointer Chain(Node::Kind kind, std::string_view token, NodePointer (WhereParser::*part)(int), int depth) {
    NodePointer first = (this->*part)(depth);
    if (first == nullptr || !Take(token)) {
      return first;
    }
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->children.push_back(std::move(first));
    do {
      NodePointer next = (this->*part)(depth);
      if (next == nullptr) {
        return nullptr;
      }
      node->children.push_back(std::move(next));
    } while (Take(token));
    return node;
  }
  NodePointer Or(int depth) { return Chain(Node::Kind::kOr, "||", &WhereParser::And, depth); }
  NodePointer And(int depth) { return Chain(Node::Kind::kAnd, "&&", &WhereParser::Unary, depth); }

  NodePointer Unary(int depth) {
    if (depth > kMostNested) {
      return Expected("less nesting");
    }
    if (Take("!")) {
      NodePointer inner = Unary(depth + 1);
      if (inner == nullptr) {
        return nullptr;
      }
      auto node = std::make_unique<Node>();
      node->kind = Node::Kind::kNot;
      node->children.push_back(std::move(inner));
      return node;
    }
    if (Take("(")) {
      NodePointer inner = Or(depth + 1);
      return inner == nullptr || Take(")") ? std::move(inner) : Expected("')'");
    }
    return Comparison();
  }

  NodePointer Comparison() {
    Skip();
    const size_t began = at_;
    auto node = std::make_unique<Node>();
    node->name = Word();
    for (char& c : node->name) {
      c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
    }
    const auto& names = FactNames();
    if (std::find(names.begin(), names.end(), node->name) == names.end()) {
      at_ = began;
      return Expected(fmt::format("one of {}", fmt::join(names, " ")));
    }
    for (const char* op : {"==", "!=", "<=", ">=", "<", ">", "="}) {
      if (Take(op)) {
        node->op = op == std::string_view("=") ? "==" : op;
        break;
      }
    }
    if (node->op.empty()) {
      return node;
    }
    Skip();
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
      const size_t end = text_.find(text_[at_], at_ + 1);
      if (end == std::string_view::npos) {
        return Expected("a closing quote");
      }
      node->value = std::string(text_.substr(at_ + 1, end - at_ - 1));
      at_ = end + 1;
    } else if (node->value = Word(); node->value.empty()) {
      return Expected("a value");
    }
    if (node->name == "arch") {
      node->value = Platform(node->value);
    }
    const bool is_order = node->op != "==" && node->op != "!=";
    if (is_order && !ToNumber(node->value)) {
      return Expected(fmt::format("a whole number after {}", node->op));
    }
    return node;
  }

  std::string Word() {
    const size_t began = at_;
    while (at_ < text_.size() && std::string_view(" \t\n()&|!<>=\"'").find(text_[at_]) == std::string_view::npos) {
      ++at_;
    }
    return std::string(text_.substr(began, at_ - began));
  }

  const std::string_view text_;
  size_t at_ = 0;
  std::string error_;
};

absl::StatusOr<Where> Where::Parse(std::string_view text) { return WhereParser(text).Parse(); }

namespace {

bool Meets(const Fact& fact, const std::string& op, const std::string& value) {
  if (op.empty()) {
    if (const auto* truth = std::get_if<bool>(&fact)) return *truth;
    if (const auto* number = std::get_if<int64_t>(&fact)) return *number != 0;
    const auto* words = std::get_if<std::vector<std::string>>(&fact);
    return words != nullptr && std::any_of(words->begin(), words->end(), [](const auto& word) { return !word.empty(); });
  }
  if (const auto* words = std::get_if<std::vector<std::string>>(&fact)) {
    const bool has = std::find(words->begin(), words->end(), value) != words->end();
    return op == "==" ? has : op == "!=" && !has;
  }
  if (const auto* truth = std::get_if<bool>(&fact)) {
    const bool is_equal = (value == "true") == *truth && (value == "true" || value == "false");
    return op == "==" ? is_equal : op == "!=" && !is_equal;
  }
  const auto* number = std::get_if<int64_t>(&fact);
  const auto wanted = ToNumber(value);
  if (number == nullptr || !wanted) {
    return false;
  }
  const int order = Compare(*number, *wanted);
  return op == "==" ? order == 0 : op == "!=" ? order != 0 : op == "<" ? order < 0 : op == "<=" ? order <= 0
         : op == ">" ? order > 0 : order >= 0;
}

Fact Known(const Facts& facts, const std::string& name) {
  const auto found = facts.find(name);
  return found == facts.end() ? Fact() : found->second;
}

// A comparison, and what it was compared with.
template <typename Node>
std::string Text(const Node& node, const Facts& facts) {
  const std::string fact = ToText(Known(facts, node.name));
  return node.op.empty() ? fmt::format("{} (is {})", node.name, fact)
                         : fmt::format("{} {} {} (is {})", node.name, node.op, node.value, fact);
}

// Why it does not hold; empty if it does.
template <typename Node>
std::string Judge(const Node& node, const Facts& facts) {
  using Kind = typename Node::Kind;
  std::string why;
  switch (node.kind) {
    case Kind::kCompare:
      return Meets(Known(facts, node.name), node.op, node.value) ? "" : Text(node, facts);
    case Kind::kNot:
      if (const Node& inner = *node.children[0]; Judge(inner, facts).empty()) {
        why = inner.kind == Kind::kCompare ? fmt::format("!{}", Text(inner, facts)) : "what is after ! holds";
      }
      return why;
    case Kind::kAnd:
      for (const auto& child : node.children) {
        if (why = Judge(*child, facts); !why.empty()) {
          return why;
        }
      }
      return "";
    case Kind::kOr:
      for (const auto& child : node.children) {
        std::string one = Judge(*child, facts);
        if (one.empty()) {
          return "";
        }
        why += (why.empty() ? "" : " or ") + one;
      }
      return why;
  }
  return why;
}

}  // namespace

bool Where::Holds(const Facts& facts) const { return WhyNot(facts).empty(); }

std::string Where::WhyNot(const Facts& facts) const { return root_ == nullptr ? "" : Judge(*root_, facts); }

}  // namespace sekisho::glue
