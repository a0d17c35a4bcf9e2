// SPDX-License-Identifier: Apache-2.0
// Text to tokens: docs/protocol/1-rsl.md, "Tokens".  White space and comments are skipped, but a
// token knows whether it touches the one before, since RSL joins what touches.
#pragma once

#include <string>
#include <string_view>

#include "rsl/ast.h"
#include "rsl/error.h"

namespace sekisho::rsl {

struct Token {
  enum class Kind {
    kEnd,
    kOpen,       // (
    kClose,      // )
    kPlus,       // +
    kAmpersand,  // &
    kBar,        // |
    kHash,       // #
    kDollar,     // $
    kOperator,   // op
    kUnquoted,   // text
    kQuoted,     // text; "...", '...' or ^c...c
  };
  Kind kind = Kind::kEnd;
  Operator op = Operator::kEqual;
  std::string text;
  Position where;
  bool is_touching = false;  // nothing between it and the token before
};

// For "saw ...": `"abc"`, `")"`, `the end of the text`.
std::string Describe(const Token& token);

// Text of the user's for a message: at most some 60 characters, control characters escaped.
std::string Shorten(std::string_view text);
std::string Quote(std::string_view text);  // the same between double quotes

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  // The next token; after the end of the text always kEnd.
  Result<Token> Next();

 private:
  bool SkipBlanks();
  void Advance();
  char Peek(size_t ahead = 0) const;
  Token Punctuation(Token::Kind kind, size_t length, Operator op = Operator::kEqual);
  Result<Token> Quoted(size_t opening, char delimiter);
  Token Unquoted();

  std::string_view text_;
  size_t at_ = 0;
  Position where_;     // of at_
  Position token_at_;  // of the token being read
  bool is_touching_ = false;
};

}  // namespace sekisho::rsl
