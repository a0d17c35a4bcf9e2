// SPDX-License-Identifier: Apache-2.0
// One walk from left to right, which is also the order in which substitutions take effect.
#include "rsl/evaluator.h"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "rsl/gram_errors.h"
#include "rsl/lexer.h"
#include "rsl/parser.h"
#include "rsl/printer.h"

namespace sekisho::rsl {
namespace {

constexpr std::string_view kSiteVariables[] = {
    "HOME",
    "LOGNAME",
    "GLOBUS_ID",
    "GLOBUS_HOST_MANUFACTURER",
    "GLOBUS_HOST_CPUTYPE",
    "GLOBUS_HOST_OSNAME",
    "GLOBUS_HOST_OSVERSION",
    "GLOBUS_GATEKEEPER_HOST",
    "GLOBUS_GATEKEEPER_PORT",
    "GLOBUS_GATEKEEPER_SUBJECT",
    "GLOBUS_LOCATION",
    "GLOBUS_GRAM_JOB_CONTACT",
    "GLOBUS_GRAM_JOB_ID",
    "GLOBUS_CACHED_STDOUT",
    "GLOBUS_CACHED_STDERR",
    "SEKISHO_ARRAY_INDEX",
    "SCRATCH_DIRECTORY",
    "GLOBUSRUN_GASS_URL",
};

class Evaluator {
 public:
  explicit Evaluator(const Variables& outermost) : outermost_(outermost) {}

  Result<Spec> Run(Spec spec);

 private:
  bool Visit(Spec& spec);
  bool VisitRelation(Spec& spec);
  bool Replace(Value& value);
  bool ReplaceVariable(Value& value);
  bool Define(const Value& pair);

  const std::string* Find(std::string_view name) const;
  bool Fail(Position where, std::string message, std::string remedy = "");

  const Variables& outermost_;
  std::map<std::string, std::vector<std::string>, std::less<>> defined_;  // innermost last
  std::vector<std::string> order_;  // names as defined, to undo at a scope's end
  std::string attribute_;           // being evaluated
  size_t size_ = 0;
  std::optional<Error> error_;
};

bool Evaluator::Fail(Position where, std::string message, std::string remedy) {
  error_ = Error{gram::RSL_EVALUATION_FAILED, Shorten(attribute_), where, std::move(message),
                 std::move(remedy)};
  return false;
}

const std::string* Evaluator::Find(std::string_view name) const {
  if (const auto inner = defined_.find(name); inner != defined_.end() && !inner->second.empty()) {
    return &inner->second.back();
  }
  const auto outer = outermost_.find(name);
  return outer == outermost_.end() ? nullptr : &outer->second;
}

Result<Spec> Evaluator::Run(Spec spec) {
  if (!Visit(spec)) {
    return *std::move(error_);
  }
  return spec;
}

bool Evaluator::Visit(Spec& spec) {
  if (spec.kind == Spec::Kind::kRelation) {
    return VisitRelation(spec);
  }
  const size_t scope = order_.size();
  for (Spec& child : spec.children) {
    if (!Visit(child)) {
      return false;
    }
  }
  while (order_.size() > scope) {
    defined_[order_.back()].pop_back();
    order_.pop_back();
  }
  return true;
}

bool Evaluator::VisitRelation(Spec& spec) {
  attribute_ = spec.relation.attribute;
  const bool is_substitution = Canonical(attribute_) == "rslsubstitution";
  if (is_substitution && spec.relation.op != Operator::kEqual) {
    return Fail(spec.where, fmt::format("expected \"=\", saw {}", Quote(ToText(spec.relation.op))));
  }
  for (Value& value : spec.relation.values) {
    if (!Replace(value) || (is_substitution && !Define(value))) {
      return false;
    }
  }
  return true;
}

bool Evaluator::Define(const Value& pair) {
  if (pair.kind != Value::Kind::kSequence || pair.children.size() != 2 ||
      pair.children[0].kind != Value::Kind::kLiteral ||
      pair.children[1].kind != Value::Kind::kLiteral) {
    return Fail(pair.where,
                fmt::format("expected a pair (NAME value), saw {}", Quote(Print(pair))));
  }
  const std::string& name = pair.children[0].text;
  if (name.empty()) {
    return Fail(pair.where, "expected a variable's name, saw an empty one");
  }
  defined_[name].push_back(pair.children[1].text);
  order_.push_back(name);
  return true;
}

bool Evaluator::Replace(Value& value) {
  if (value.kind == Value::Kind::kVariable) {
    return ReplaceVariable(value);
  }
  for (Value& child : value.children) {
    if (!Replace(child)) {
      return false;
    }
  }
  if (value.kind == Value::Kind::kConcatenation) {
    for (const Value& child : value.children) {
      value.text += child.text;
    }
    value.kind = Value::Kind::kLiteral;
    value.children.clear();
  }
  return true;
}

bool Evaluator::ReplaceVariable(Value& value) {
  if (!Replace(value.children[0])) {
    return false;
  }
  const std::string name = std::move(value.children[0].text);
  if (const std::string* found = Find(name)) {
    value.text = *found;
  } else if (value.children.size() == 2) {
    if (!Replace(value.children[1])) {
      return false;
    }
    value.text = std::move(value.children[1].text);
  } else {
    return Fail(
        value.where,
        fmt::format("expected a defined variable, saw $({}), which is not defined", Shorten(name)),
        fmt::format("define it before its use with (rsl_substitution = ({0} value)), or give a "
                    "default: $({0} default)",
                    Shorten(name)));
  }
  size_ += value.text.size();
  if (size_ > kEvaluatedSizeMax) {
    return Fail(value.where,
                fmt::format("expected variables to stand for at most {} bytes, saw more",
                            kEvaluatedSizeMax));
  }
  value.kind = Value::Kind::kLiteral;
  value.children.clear();
  return true;
}

}  // namespace

Result<Spec> Evaluate(const Spec& spec, const Variables& variables) {
  RSL_TRY(Spec evaluated, Evaluator(variables).Run(spec));
  if (const size_t size = Print(evaluated).size(); size > kTextSizeMax) {
    return Error{
        gram::RSL_EVALUATION_FAILED, "", spec.where,
        fmt::format("expected at most {} bytes once evaluated, saw {}", kTextSizeMax, size), ""};
  }
  return evaluated;
}

std::span<const std::string_view> SiteVariableNames() { return kSiteVariables; }

Variables UnknownSiteVariables() {
  Variables variables;
  for (std::string_view name : kSiteVariables) {
    variables.emplace(name, fmt::format("$({})", name));
  }
  variables["GLOBUSRUN_GASS_URL"] = kClientUrl;
  return variables;
}

}  // namespace sekisho::rsl
