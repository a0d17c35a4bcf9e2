// SPDX-License-Identifier: Apache-2.0
// Text to tokens.
#include "rsl/lexer.h"

#include <fmt/format.h>

#include "rsl/gram_errors.h"

namespace sekisho::rsl {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Characters that no unquoted literal may hold; one may not start with + & | either.
bool EndsUnquoted(char c) {
  return IsBlank(c) || c == '\0' ||
         std::string_view("=!<>()\"'^*$#?~").find(c) != std::string_view::npos;
}

Error Malformed(Position where, std::string message) {
  return {gram::BAD_RSL, "", where, std::move(message), ""};
}

}  // namespace

std::string Shorten(std::string_view text) {
  constexpr size_t kShown = 60;
  std::string shown;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (i >= kShown && (c & 0xC0) != 0x80) {
      return shown + "...";
    }
    if (c == '\n') {
      shown += "\\n";
    } else if (c < 0x20 || c == 0x7F) {
      shown += fmt::format("\\x{:02x}", c);
    } else {
      shown += text[i];
    }
  }
  return shown;
}

std::string Quote(std::string_view text) { return fmt::format("\"{}\"", Shorten(text)); }

std::string Describe(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kEnd:
      return "the end of the text";
    case Token::Kind::kOperator:
      return Quote(ToText(token.op));
    default:
      return Quote(token.text);
  }
}

char Lexer::Peek(size_t ahead) const {
  return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
}

void Lexer::Advance() {
  const char c = text_[at_++];
  if (c == '\n') {
    ++where_.line;
    where_.column = 1;
  } else if (at_ >= text_.size() || (text_[at_] & 0xC0) != 0x80) {
    ++where_.column;  // continuation bytes of UTF-8 share their character's column
  }
}

// False if a comment is not closed.
bool Lexer::SkipBlanks() {
  is_touching_ = true;
  while (at_ < text_.size()) {
    if (IsBlank(text_[at_])) {
      Advance();
    } else if (text_[at_] == '(' && Peek(1) == '*') {
      token_at_ = where_;
      const size_t end = text_.find("*)", at_ + 2);
      if (end == std::string_view::npos) {
        return false;
      }
      while (at_ < end + 2) {
        Advance();
      }
    } else {
      break;
    }
    is_touching_ = false;
  }
  token_at_ = where_;
  return true;
}

Token Lexer::Punctuation(Token::Kind kind, size_t length, Operator op) {
  Token token{kind, op, std::string(text_.substr(at_, length)), token_at_, is_touching_};
  for (size_t i = 0; i < length; ++i) {
    Advance();
  }
  return token;
}

// `opening` characters start the literal; `delimiter` ends it, and twice it stands for itself.
Result<Token> Lexer::Quoted(size_t opening, char delimiter) {
  Token token{Token::Kind::kQuoted, Operator::kEqual, "", token_at_, is_touching_};
  for (size_t i = 0; i < opening; ++i) {
    Advance();
  }
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\0') {
      return Malformed(where_, "expected text, saw a NUL byte");
    }
    Advance();
    if (c == delimiter) {
      if (at_ >= text_.size() || text_[at_] != delimiter) {
        return token;
      }
      Advance();
    }
    token.text += c;
  }
  return Malformed(token_at_,
                   fmt::format("expected a closing {} for the literal that starts here, saw "
                               "the end of the text",
                               Quote(std::string_view(&delimiter, 1))));
}

Token Lexer::Unquoted() {
  Token token{Token::Kind::kUnquoted, Operator::kEqual, "", token_at_, is_touching_};
  while (at_ < text_.size() && !EndsUnquoted(text_[at_])) {
    token.text += text_[at_];
    Advance();
  }
  return token;
}

Result<Token> Lexer::Next() {
  if (!SkipBlanks()) {
    return Malformed(
        token_at_,
        "expected \"*)\" to close the comment that starts here, saw the end of the text");
  }
  if (at_ >= text_.size()) {
    return Token{Token::Kind::kEnd, Operator::kEqual, "", token_at_, false};
  }

  const char c = text_[at_];
  switch (c) {
    case '(':
      return Punctuation(Token::Kind::kOpen, 1);
    case ')':
      return Punctuation(Token::Kind::kClose, 1);
    case '+':
      return Punctuation(Token::Kind::kPlus, 1);
    case '&':
      return Punctuation(Token::Kind::kAmpersand, 1);
    case '|':
      return Punctuation(Token::Kind::kBar, 1);
    case '#':
      return Punctuation(Token::Kind::kHash, 1);
    case '$':
      return Punctuation(Token::Kind::kDollar, 1);
    case '=':
      return Punctuation(Token::Kind::kOperator, 1, Operator::kEqual);
    case '>':
      return Peek(1) == '=' ? Punctuation(Token::Kind::kOperator, 2, Operator::kGreaterEqual)
                            : Punctuation(Token::Kind::kOperator, 1, Operator::kGreater);
    case '<':
      return Peek(1) == '=' ? Punctuation(Token::Kind::kOperator, 2, Operator::kLessEqual)
                            : Punctuation(Token::Kind::kOperator, 1, Operator::kLess);
    case '!':
      if (Peek(1) == '=') {
        return Punctuation(Token::Kind::kOperator, 2, Operator::kNotEqual);
      }
      return Malformed(token_at_, "expected \"!=\", saw \"!\" alone");
    case '"':
    case '\'':
      return Quoted(1, c);
    case '^':
      if (at_ + 1 >= text_.size()) {
        return Malformed(token_at_, "expected a delimiter after \"^\", saw the end of the text");
      }
      if ((text_[at_ + 1] & 0x80) != 0) {
        return Malformed(token_at_,
                         "expected an ASCII delimiter after \"^\", saw another character");
      }
      return Quoted(2, text_[at_ + 1]);
    case '*':
    case '?':
    case '~':
      return Malformed(token_at_, fmt::format("expected RSL, saw {}, which must be quoted",
                                              Quote(std::string_view(&c, 1))));
    case '\0':
      return Malformed(token_at_, "expected RSL, saw a NUL byte");
    default:
      return Unquoted();
  }
}

}  // namespace sekisho::rsl
