// SPDX-License-Identifier: Apache-2.0
#include "glue/offer.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <map>

#include "glue/urn.h"

namespace sekisho::glue {
namespace {

constexpr char kDomainPrefix[] = "urn:ad:";
constexpr int64_t kUnknownNumber = 999'999'999;

std::optional<int64_t> Number(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || number < 0 ||
      number == kUnknownNumber) {
    return std::nullopt;
  }
  return number;
}

std::optional<bool> Flag(const std::string& text) {
  if (text == "TRUE" || text == "true") return true;
  if (text == "FALSE" || text == "false") return false;
  return std::nullopt;
}

// The value of KEY=VALUE among an entry's other information.
std::vector<std::string> Others(const Entry& entry, const std::string& key) {
  std::vector<std::string> values;
  for (const std::string& info : entry.All("GLUE2EntityOtherInfo")) {
    if (info.starts_with(key + "=")) {
      values.push_back(info.substr(key.size() + 1));
    }
  }
  return values;
}
std::optional<int64_t> OtherNumber(const Entry& entry, const std::string& key) {
  const auto values = Others(entry, key);
  return values.empty() ? std::nullopt : Number(values.front());
}

// "siteA" of a name below GLUE2DomainID=urn:ad:siteA; empty if it is below none.  The outermost domain counts: to
// it the server lets only the site itself write, what is below it may be called anything.
std::string SiteOf(const std::string& dn) {
  const auto names = ParseDn(dn);
  std::string site;
  for (const auto& [attribute, value] : names ? *names : Names()) {
    if (attribute == "glue2domainid") {
      site = value.starts_with(kDomainPrefix) ? FromUrnPart(value.substr(sizeof(kDomainPrefix) - 1)) : value;
    }
  }
  return site;
}

// What is told to people stays on its line.
std::string Plain(std::string text) {
  for (char& c : text) {
    c = static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return text;
}
std::vector<std::string> Plain(std::vector<std::string> texts) {
  for (std::string& text : texts) {
    text = Plain(std::move(text));
  }
  return texts;
}

std::string AddressOf(const std::string& url) {
  const std::string_view scheme = "https://";
  if (!url.starts_with(scheme)) {
    return "";
  }
  const std::string rest = url.substr(scheme.size());
  return rest.substr(0, rest.find('/'));
}

void ReadEndpoint(const Entry& entry, Offer& offer) {
  const auto& languages = entry.All("GLUE2ComputingEndpointJobDescription");
  const std::string address = AddressOf(entry.First("GLUE2EndpointURL"));
  if (address.empty() || entry.First("GLUE2EndpointInterfaceName") != "org.sekisho.gatekeeper" ||
      std::find(languages.begin(), languages.end(), "globus:rsl") == languages.end()) {
    return;
  }
  offer.contact = Plain(address);
  offer.health = Plain(entry.First("GLUE2EndpointHealthState"));
  offer.health_info = Plain(entry.First("GLUE2EndpointHealthStateInfo"));
  offer.serving_state = Plain(entry.First("GLUE2EndpointServingState"));
  offer.version = Plain(entry.First("GLUE2EndpointImplementationVersion"));
  offer.created_s = ParseTime(entry.First("GLUE2EntityCreationTime")).value_or(0);
  offer.validity_s = Number(entry.First("GLUE2EntityValidity"));
}

// "siteB rtt_ms=8.5 bandwidth_mbps=940"; 0 is not known.
Link ReadLink(const std::string& text) {
  const auto number = [&](const std::string& key) -> std::optional<double> {
    const size_t at = text.find(" " + key + "=");
    double value = 0;
    if (at != std::string::npos) {
      std::from_chars(text.data() + at + key.size() + 2, text.data() + text.size(), value);
    }
    return value > 0 ? std::optional(value) : std::nullopt;
  };
  return {Plain(FromUrnPart(text.substr(0, text.find(' ')))), number("rtt_ms"), number("bandwidth_mbps")};
}

void ReadShare(const Entry& entry, Offer& offer) {
  const std::string prefix = "GLUE2ComputingShare";
  const auto number = [&](const char* name) { return Number(entry.First(prefix + name)); };
  Share& share = offer.shares.emplace_back();
  share.service = Plain(entry.First("GLUE2EntityName"));
  share.queue = Plain(entry.First(prefix + "MappingQueue"));
  share.serving_state = Plain(entry.First(prefix + "ServingState"));
  share.free_slots = number("FreeSlots");
  share.used_slots = number("UsedSlots");
  share.requested_slots = number("RequestedSlots");
  share.slots_per_job = number("MaxSlotsPerJob");
  share.running = number("RunningJobs");
  share.waiting = number("WaitingJobs");
  share.wall_time_max_s = number("MaxWallTime");
  share.wait_s = number("EstimatedAverageWaitingTime");
  share.environments = entry.All(prefix + "ExecutionEnvironmentForeignKey");
}

void ReadEnvironment(const Entry& entry, Offer& offer) {
  const std::string prefix = "GLUE2ExecutionEnvironment";
  const auto number = [&](const char* name) { return Number(entry.First(prefix + name)); };
  Environment& environment = offer.environments.emplace_back();
  environment.id = entry.First("GLUE2ResourceID");
  environment.name = Plain(entry.First("GLUE2EntityName"));
  environment.platform = Plain(entry.First(prefix + "Platform"));
  environment.os = Plain(entry.First(prefix + "OSName"));
  if (environment.os.empty()) {
    environment.os = Plain(entry.First(prefix + "OSFamily"));
  }
  environment.memory_mb = number("MainMemorySize");
  environment.clock_mhz = number("CPUClockSpeed");
  environment.processors = number("LogicalCPUs");
  environment.nodes = number("TotalInstances");
  environment.nodes_used = number("UsedInstances");
  environment.nodes_down = number("UnavailableInstances");
  environment.reached = Flag(entry.First(prefix + "ConnectivityIn"));
  environment.reaches_out = Flag(entry.First(prefix + "ConnectivityOut"));
  environment.free_slots = OtherNumber(entry, "FreeSlots");
  environment.total_slots = OtherNumber(entry, "TotalSlots");
  environment.tags = Plain(Others(entry, "Tag"));
}

}  // namespace

const char kOfferFilter[] =
    "(|(objectClass=GLUE2ComputingService)(objectClass=GLUE2ComputingEndpoint)"
    "(objectClass=GLUE2AccessPolicy)(objectClass=GLUE2ComputingShare)(objectClass=GLUE2ExecutionEnvironment)"
    "(objectClass=GLUE2ApplicationEnvironment))";

const std::vector<std::string>& OfferAttributes() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"objectClass",
                                    "GLUE2EntityName",
                                    "GLUE2EntityOtherInfo",
                                    "GLUE2EntityCreationTime",
                                    "GLUE2EntityValidity",
                                    "GLUE2EndpointURL",
                                    "GLUE2EndpointInterfaceName",
                                    "GLUE2EndpointHealthState",
                                    "GLUE2EndpointHealthStateInfo",
                                    "GLUE2EndpointServingState",
                                    "GLUE2EndpointImplementationVersion",
                                    "GLUE2ComputingEndpointJobDescription",
                                    "GLUE2PolicyRule",
                                    "GLUE2ResourceID",
                                    "GLUE2ApplicationEnvironmentAppName"};
    for (const char* name : {"MappingQueue", "ServingState", "FreeSlots", "UsedSlots", "RequestedSlots",
                             "MaxSlotsPerJob", "RunningJobs", "WaitingJobs", "MaxWallTime",
                             "EstimatedAverageWaitingTime", "ExecutionEnvironmentForeignKey"}) {
      all.push_back(std::string("GLUE2ComputingShare") + name);
    }
    for (const char* name : {"Platform", "OSName", "OSFamily", "MainMemorySize", "CPUClockSpeed", "LogicalCPUs",
                             "TotalInstances", "UsedInstances", "UnavailableInstances", "ConnectivityIn",
                             "ConnectivityOut"}) {
      all.push_back(std::string("GLUE2ExecutionEnvironment") + name);
    }
    return all;
  }();
  return names;
}

const Environment* Offer::Find(const std::string& id) const {
  const auto found = std::find_if(environments.begin(), environments.end(),
                                  [&](const Environment& environment) { return environment.id == id; });
  return found == environments.end() ? nullptr : &*found;
}

std::vector<const Environment*> Offer::Of(const Share& share) const {
  std::vector<const Environment*> found;
  for (const std::string& id : share.environments) {
    if (const Environment* environment = Find(id)) {
      found.push_back(environment);
    }
  }
  return found;
}

std::vector<Offer> ReadOffers(const std::vector<Entry>& entries) {
  OfferReader reader;
  for (const Entry& entry : entries) {
    reader.Add(entry);
  }
  return reader.Take();
}

void OfferReader::Add(const Entry& entry) {
  const std::string site = SiteOf(entry.dn);
  if (site.empty()) {
    return;
  }
  Offer& offer = offers_[site];
  if (entry.Is("GLUE2ComputingEndpoint")) {
    ReadEndpoint(entry, offer);
  } else if (entry.Is("GLUE2ComputingService")) {
    offer.other = Plain(entry.All("GLUE2EntityOtherInfo"));
    for (const std::string& link : Others(entry, "Network")) {
      offer.links.push_back(ReadLink(link));
    }
  } else if (entry.Is("GLUE2AccessPolicy")) {
    offer.has_policy = true;
    const auto rules = Plain(entry.All("GLUE2PolicyRule"));
    offer.access.insert(offer.access.end(), rules.begin(), rules.end());
  } else if (entry.Is("GLUE2ComputingShare")) {
    ReadShare(entry, offer);
  } else if (entry.Is("GLUE2ExecutionEnvironment")) {
    ReadEnvironment(entry, offer);
  } else if (entry.Is("GLUE2ApplicationEnvironment")) {
    offer.mpi.push_back(Plain(entry.First("GLUE2ApplicationEnvironmentAppName")));
  }
}

std::vector<Offer> OfferReader::Take() {
  std::vector<Offer> found;
  for (auto& [site, offer] : offers_) {
    offer.site = Plain(site);
    std::sort(offer.shares.begin(), offer.shares.end(),
              [](const Share& one, const Share& other) { return one.service < other.service; });
    if (!offer.contact.empty()) {
      found.push_back(std::move(offer));
    }
  }
  return found;
}

std::optional<int64_t> ParseTime(const std::string& text) {
  tm utc{};
  int end = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &utc.tm_year, &utc.tm_mon, &utc.tm_mday, &utc.tm_hour,
                  &utc.tm_min, &utc.tm_sec, &end) != 6 ||
      size_t(end) != text.size() || utc.tm_year < 1970) {
    return std::nullopt;
  }
  utc.tm_year -= 1900;
  utc.tm_mon -= 1;
  return timegm(&utc);
}

}  // namespace sekisho::glue
