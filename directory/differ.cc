// SPDX-License-Identifier: Apache-2.0
#include "directory/differ.h"

#include <algorithm>
#include <ctime>
#include <limits>

namespace sekisho::directory {
namespace {

using glue::Attributes;
using glue::Change;
using glue::Entry;

constexpr char kCreationTime[] = "GLUE2EntityCreationTime";
constexpr char kValidity[] = "GLUE2EntityValidity";
constexpr char kObjectClass[] = "objectClass";
constexpr char kDynamic[] = "dynamicObject";

std::string IsoTime(int64_t seconds) {
  const time_t time = seconds;
  tm utc{};
  gmtime_r(&time, &utc);
  char text[32];
  strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

// Values are sets; most have one.
bool AreSame(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  return one == other || (one.size() == other.size() && one.size() > 1 &&
                          std::is_permutation(one.begin(), one.end(), other.begin()));
}

size_t Depth(const std::string& dn) {
  const auto names = glue::ParseDn(dn);
  return names ? names->size() : 0;
}

// As it is written: with how long it is true, where its class has a place for that.
Entry Dated(const Entry& wanted, const DiffRules& rules) {
  Entry dated = wanted;
  if (!wanted.Is("GLUE2Group") && !wanted.Is("GLUE2Extension")) {
    dated.attributes[kCreationTime] = {IsoTime(rules.now_s)};
    dated.attributes[kValidity] = {std::to_string(rules.validity_s)};
  }
  if (rules.has_expiry) {
    dated.attributes[kObjectClass].push_back(kDynamic);
  }
  return dated;
}

// The attributes that differ, not counting when it was said.
Attributes Differences(const Entry& known, const Entry& dated) {
  Attributes changed;
  for (const auto& [name, values] : dated.attributes) {
    if (name != kCreationTime && !AreSame(known.All(name), values)) {
      changed[name] = values;
    }
  }
  for (const auto& [name, values] : known.attributes) {
    if (dated.attributes.count(name) == 0) {
      changed[name] = {};
    }
  }
  return changed;
}

Change Make(Change::Kind kind, const Entry& entry, Attributes attributes, int ttl_s = 0) {
  return {kind, entry.dn, std::move(attributes), ttl_s};
}

}  // namespace

std::vector<Change> Diff(Published& published, const std::vector<Entry>& wanted, const DiffRules& rules) {
  std::vector<Change> deletes, adds, modifies, refreshes;
  for (auto& [name, known] : published) {
    known.is_wanted = false;
  }
  for (const Entry& entry : wanted) {
    Entry dated = Dated(entry, rules);
    auto [at, is_new] = published.try_emplace(glue::CanonicalDn(entry.dn));
    Known& known = at->second;
    known.is_wanted = true;
    if (is_new) {
      adds.push_back(Make(Change::Kind::kAdd, dated, dated.attributes));
    } else {
      Attributes changed = Differences(known.entry, dated);
      // In the future it was renewed by a clock that has been set back since.
      const bool is_due = rules.now_s - known.renewed_s >= rules.renew_after_s || rules.now_s < known.renewed_s;
      if (changed.empty() && !is_due) {
        continue;
      }
      dated.dn = known.entry.dn;  // as the server spells it
      if (dated.attributes.count(kCreationTime) > 0) {
        changed[kCreationTime] = dated.attributes[kCreationTime];
      }
      if (!changed.empty()) {
        modifies.push_back(Make(Change::Kind::kModify, dated, std::move(changed)));
      }
      if (!is_due) {
        known.entry = std::move(dated);
        continue;
      }
    }
    known.renewed_s = rules.now_s;
    if (rules.has_expiry) {
      refreshes.push_back(Make(Change::Kind::kRefresh, dated, {}, rules.validity_s));
    }
    known.entry = std::move(dated);
  }
  for (auto at = published.begin(); at != published.end();) {
    const Known& known = at->second;
    if (!known.is_wanted && rules.removes) {
      deletes.push_back(Make(Change::Kind::kDelete, known.entry, {}));
    }
    const bool is_old = known.renewed_s + rules.validity_s < rules.now_s;
    at = !known.is_wanted && (rules.removes || is_old) ? published.erase(at) : std::next(at);
  }
  std::stable_sort(deletes.begin(), deletes.end(),
                   [](const Change& one, const Change& other) { return Depth(one.dn) > Depth(other.dn); });
  std::stable_sort(adds.begin(), adds.end(),
                   [](const Change& one, const Change& other) { return Depth(one.dn) < Depth(other.dn); });
  std::vector<Change> changes = std::move(deletes);
  for (auto* part : {&adds, &modifies, &refreshes}) {
    std::move(part->begin(), part->end(), std::back_inserter(changes));
  }
  return changes;
}

int64_t NextRenewal(const Published& published, const DiffRules& rules) {
  int64_t next = std::numeric_limits<int64_t>::max();
  for (const auto& [name, known] : published) {
    if (known.is_wanted) {
      next = std::min(next, known.renewed_s + rules.renew_after_s);
    }
  }
  return next;
}

}  // namespace sekisho::directory
