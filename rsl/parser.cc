// SPDX-License-Identifier: Apache-2.0
// Recursive descent.  Functions return false after setting error_ and fill what they are handed,
// not Result<T>: small frames keep kDepthMax levels within a small stack.
#include "rsl/parser.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/utf8.h"
#include "rsl/gram_errors.h"
#include "rsl/lexer.h"

namespace sekisho::rsl {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {}

  Result<Spec> Run();

 private:
  bool Step();  // to the next token
  bool Fail(std::string_view expected);
  bool Deeper();

  bool ParsePrefixed(Spec& spec);
  bool ParseChild(Spec& spec);
  bool ParseRelation(Spec& spec);
  bool ParseValues(std::vector<Value>& values);
  bool ParseValue(Value& value);
  bool ParseSimple(Value& value);
  bool ParseOperand(Value& value);
  bool ParseVariable(Value& value);

  bool StartsValue() const;
  bool Joins(Token::Kind last) const;

  Lexer lexer_;
  Token token_;
  Token::Kind last_ = Token::Kind::kEnd;  // the token before token_
  int depth_ = 0;
  std::optional<Error> error_;
};

bool Parser::Step() {
  last_ = token_.kind;
  Result<Token> next = lexer_.Next();
  if (!next.ok()) {
    error_ = next.error();
    return false;
  }
  token_ = *std::move(next);
  return true;
}

bool Parser::Fail(std::string_view expected) {
  error_ = Error{gram::BAD_RSL, "", token_.where,
                 fmt::format("expected {}, saw {}", expected, Describe(token_)), ""};
  return false;
}

bool Parser::Deeper() {
  if (++depth_ > kDepthMax) {
    error_ = Error{gram::BAD_RSL, "", token_.where,
                   fmt::format("expected at most {} nested parentheses, saw more", kDepthMax), ""};
    return false;
  }
  return true;
}

std::optional<Spec::Kind> Prefix(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kPlus:
      return Spec::Kind::kMultiRequest;
    case Token::Kind::kAmpersand:
      return Spec::Kind::kConjunction;
    case Token::Kind::kBar:
      return Spec::Kind::kDisjunction;
    default:
      return std::nullopt;
  }
}

bool IsLiteral(const Token& token) {
  return token.kind == Token::Kind::kUnquoted || token.kind == Token::Kind::kQuoted;
}

Result<Spec> Parser::Run() {
  if (!Step()) {
    return *std::move(error_);
  }
  if (token_.kind == Token::Kind::kEnd) {
    return Error{gram::ZERO_LENGTH_RSL, "", token_.where, "expected a request, saw an empty text",
                 ""};
  }
  Spec spec;
  if (!Prefix(token_)) {
    Fail("\"&\", \"+\" or \"|\" to start the request");
    error_->remedy = "write &(executable=/bin/date)";
    return *std::move(error_);
  }
  if (!ParsePrefixed(spec)) {
    return *std::move(error_);
  }
  if (token_.kind != Token::Kind::kEnd) {
    Fail("\"(\" or the end of the text");
    return *std::move(error_);
  }
  return spec;
}

// & ( ... ) ( ... )
bool Parser::ParsePrefixed(Spec& spec) {
  spec.kind = *Prefix(token_);
  spec.where = token_.where;
  const std::string expected = fmt::format("\"(\" after {}", Quote(token_.text));
  if (!Step()) {
    return false;
  }
  if (token_.kind != Token::Kind::kOpen) {
    return Fail(expected);
  }
  while (token_.kind == Token::Kind::kOpen) {
    if (!ParseChild(spec.children.emplace_back())) {
      return false;
    }
  }
  return true;
}

// ( specification )
bool Parser::ParseChild(Spec& spec) {
  if (!Deeper() || !Step()) {
    return false;
  }
  if (Prefix(token_) ? !ParsePrefixed(spec) : !ParseRelation(spec)) {
    return false;
  }
  if (token_.kind != Token::Kind::kClose) {
    return Fail(spec.kind == Spec::Kind::kRelation ? "a value or \")\"" : "\"(\" or \")\"");
  }
  --depth_;
  return Step();
}

bool Parser::ParseRelation(Spec& spec) {
  spec.kind = Spec::Kind::kRelation;
  spec.where = token_.where;
  if (!IsLiteral(token_)) {
    return Fail("an attribute's name, \"&\", \"|\" or \"+\"");
  }
  if (Canonical(token_.text).empty()) {
    return Fail("an attribute's name");
  }
  spec.relation.attribute = std::move(token_.text);
  if (!Step()) {
    return false;
  }
  if (token_.kind != Token::Kind::kOperator) {
    return Fail(fmt::format("\"=\" or another operator after {}", Quote(spec.relation.attribute)));
  }
  spec.relation.op = token_.op;
  return Step() && ParseValues(spec.relation.values);
}

bool Parser::StartsValue() const {
  return IsLiteral(token_) || token_.kind == Token::Kind::kDollar ||
         token_.kind == Token::Kind::kOpen;
}

bool Parser::ParseValues(std::vector<Value>& values) {
  if (!StartsValue()) {
    return Fail("a value");
  }
  while (StartsValue()) {
    if (!ParseValue(values.emplace_back())) {
      return false;
    }
  }
  return true;
}

bool Parser::ParseValue(Value& value) {
  if (token_.kind != Token::Kind::kOpen) {
    return ParseSimple(value);
  }
  value.kind = Value::Kind::kSequence;
  value.where = token_.where;
  if (!Deeper() || !Step() || !ParseValues(value.children)) {
    return false;
  }
  if (token_.kind != Token::Kind::kClose) {
    return Fail("a value or \")\"");
  }
  --depth_;
  return Step();
}

// Does token_ continue a simple value that ended in a token of kind `last`?
bool Parser::Joins(Token::Kind last) const {
  if (!token_.is_touching) {
    return false;
  }
  return (last == Token::Kind::kUnquoted && token_.kind == Token::Kind::kDollar) ||
         (last == Token::Kind::kClose &&
          (token_.kind == Token::Kind::kUnquoted || token_.kind == Token::Kind::kDollar));
}

// One operand, or several joined by # or by touching.
bool Parser::ParseSimple(Value& value) {
  if (!ParseOperand(value)) {
    return false;
  }
  while (token_.kind == Token::Kind::kHash || Joins(last_)) {
    if (token_.kind == Token::Kind::kHash && !Step()) {
      return false;
    }
    if (value.kind != Value::Kind::kConcatenation) {
      Value first = std::exchange(value, Value{});
      value.kind = Value::Kind::kConcatenation;
      value.where = first.where;
      value.children.push_back(std::move(first));
    }
    if (!ParseOperand(value.children.emplace_back())) {
      return false;
    }
  }
  return true;
}

bool Parser::ParseOperand(Value& value) {
  if (token_.kind == Token::Kind::kDollar) {
    return ParseVariable(value);
  }
  if (!IsLiteral(token_)) {
    return Fail("a literal or a variable after \"#\"");
  }
  value.text = std::move(token_.text);
  value.where = token_.where;
  return Step();
}

// $ ( name [default] )
bool Parser::ParseVariable(Value& value) {
  value.kind = Value::Kind::kVariable;
  value.where = token_.where;
  if (!Deeper() || !Step()) {
    return false;
  }
  if (token_.kind != Token::Kind::kOpen) {
    return Fail("\"(\" after \"$\"");
  }
  if (!Step()) {
    return false;
  }
  if (!IsLiteral(token_) && token_.kind != Token::Kind::kDollar) {
    return Fail("a variable's name");
  }
  if (!ParseSimple(value.children.emplace_back())) {
    return false;
  }
  if (token_.kind != Token::Kind::kClose) {
    if (!IsLiteral(token_) && token_.kind != Token::Kind::kDollar) {
      return Fail("a default or \")\"");
    }
    if (!ParseSimple(value.children.emplace_back())) {
      return false;
    }
  }
  if (token_.kind != Token::Kind::kClose) {
    return Fail("\")\" after the variable");
  }
  --depth_;
  return Step();
}

Position PositionAfter(std::string_view before) {
  Position where;
  for (char c : before) {
    if (c == '\n') {
      ++where.line;
      where.column = 1;
    } else if ((c & 0xC0) != 0x80) {
      ++where.column;
    }
  }
  return where;
}

}  // namespace

Result<Spec> Parse(std::string_view text) {
  if (text.size() > kTextSizeMax) {
    return Error{gram::INVALID_REQUEST,
                 "",
                 {},
                 fmt::format("expected at most {} bytes, saw {}", kTextSizeMax, text.size()),
                 ""};
  }
  if (const size_t valid = ValidUtf8(text); valid < text.size()) {
    return Error{gram::BAD_RSL, "", PositionAfter(text.substr(0, valid)),
                 fmt::format("expected UTF-8, saw the byte 0x{:02x}",
                             static_cast<unsigned char>(text[valid])),
                 ""};
  }
  return Parser(text).Run();
}

}  // namespace sekisho::rsl
