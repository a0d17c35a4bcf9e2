// SPDX-License-Identifier: Apache-2.0
#include "directory/entries.h"

#include <algorithm>

#include <fmt/format.h>

#include "glue/platform.h"
#include "glue/urn.h"

namespace sekisho::directory {
namespace {

using glue::Attributes;
using glue::ChildDn;
using glue::Entry;
using proto::ActivityState;
using proto::ResourceState;
using proto::ShareState;
using proto::SiteState;

constexpr int64_t kUnknownNumber = 999'999'999;  // GLUE's filler where a MUST is not known

std::string Text(int64_t number) { return std::to_string(number); }
std::string Flag(bool is_true) { return is_true ? "TRUE" : "FALSE"; }

std::string OsFamily(const std::string& os) {
  for (const char* family : {"macosx", "solaris", "windows"}) {
    if (os.rfind(family, 0) == 0) {
      return family;
    }
  }
  return "linux";  // what Sekisho's agents run on
}

std::string IsoTime(int64_t ms) {
  const time_t seconds = ms / 1000;
  tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

// One site's entries on their way; every id and name is made in one place.
class Site {
 public:
  Site(const Profile& profile, const SiteState& state, const Health& health, const std::string& base)
      : profile_(profile),
        state_(state),
        health_(health),
        host_(profile.contact.substr(0, profile.contact.rfind(':'))),
        domain_dn_(SiteDn(profile.site, base)),
        services_dn_(ChildDn("GLUE2GroupID", "services", domain_dn_)),
        service_dn_(ChildDn("GLUE2ServiceID", ServiceId(), services_dn_)),
        endpoint_dn_(ChildDn("GLUE2EndpointID", EndpointId(), service_dn_)),
        manager_dn_(ChildDn("GLUE2ManagerID", ManagerId(), service_dn_)) {}

  std::vector<Entry> Take() {
    AddDomain();
    AddService();
    AddEndpoint();
    if (health_.is_connected) {
      AddManager();
      AddNetwork();
      for (const ResourceState& resource : state_.resource()) {
        AddEnvironment(resource);
      }
      for (const std::string& mpi : state_.mpi()) {
        AddApplication(mpi);
      }
      for (const ShareState& share : state_.share()) {
        AddShare(share);
      }
      if (state_.activity_size() > 0) {
        AddGroup("ComputingActivities", endpoint_dn_);
      }
      for (const ActivityState& activity : state_.activity()) {
        AddActivity(activity);
      }
    }
    return std::move(entries_);
  }

 private:
  std::string DomainId() const { return "urn:ad:" + glue::ToUrnPart(profile_.site); }
  std::string Id(const char* kind, const std::string& name) const {
    return fmt::format("urn:ogf:{}:{}:{}", kind, glue::ToUrnPart(host_), glue::ToUrnPart(name));
  }
  std::string ServiceId() const { return Id("ComputingService", profile_.site); }
  std::string EndpointId() const { return Id("ComputingEndpoint", "org.sekisho.gatekeeper:" + Url()); }
  std::string ManagerId() const { return Id("ComputingManager", "sekisho"); }
  std::string ShareId(const std::string& service) const { return Id("ComputingShare", service); }
  std::string EnvironmentId(const std::string& resource) const { return Id("ExecutionEnvironment", resource); }
  std::string Url() const { return "https://" + profile_.contact; }

  Attributes& Add(std::string dn, std::vector<std::string> classes) {
    Entry& entry = entries_.emplace_back();
    entry.dn = std::move(dn);
    entry.attributes["objectClass"] = std::move(classes);
    return entry.attributes;
  }
  void AddGroup(const std::string& name, const std::string& parent) {
    Add(ChildDn("GLUE2GroupID", name, parent), {"GLUE2Group"})["GLUE2GroupID"] = {name};
  }
  static void SetIf(Attributes& to, const std::string& name, const std::string& value) {
    if (!value.empty()) {
      to[name] = {value};
    }
  }
  static void SetIf(Attributes& to, const std::string& name, const std::vector<std::string>& values) {
    if (!values.empty()) {
      to[name] = values;
    }
  }

  void AddDomain() {
    Attributes& domain = Add(domain_dn_, {"GLUE2Domain", "GLUE2AdminDomain"});
    domain["GLUE2DomainID"] = {DomainId()};
    domain["GLUE2EntityName"] = {profile_.site};
    SetIf(domain, "GLUE2DomainDescription", profile_.description);
    SetIf(domain, "GLUE2DomainWWW", profile_.www);
    AddGroup("services", domain_dn_);
  }

  void AddService() {
    Attributes& service = Add(service_dn_, {"GLUE2Service", "GLUE2ComputingService"});
    service["GLUE2ServiceID"] = {ServiceId()};
    service["GLUE2EntityName"] = {profile_.site};
    service["GLUE2ServiceType"] = {"org.sekisho.site"};
    service["GLUE2ServiceQualityLevel"] = {profile_.quality};
    service["GLUE2ServiceCapability"] = {"executionmanagement.jobexecution", "executionmanagement.jobmanagement"};
    service["GLUE2ServiceAdminDomainForeignKey"] = {DomainId()};
    std::vector<std::string> network;
    for (const std::string& protocol : profile_.protocols) {
      network.push_back("Protocol=" + protocol);
    }
    for (const Profile::Link& link : profile_.links) {
      network.push_back(fmt::format("Network={} rtt_ms={:g} bandwidth_mbps={:g}", glue::ToUrnPart(link.site),
                                    link.rtt_ms, link.bandwidth_mbps));
    }
    SetIf(service, "GLUE2EntityOtherInfo", network);
    if (health_.is_connected) {
      int64_t running = 0, waiting = 0, suspended = 0;
      for (const ShareState& share : state_.share()) {
        running += share.running() - share.suspended();
        suspended += share.suspended();
        waiting += share.waiting();
      }
      service["GLUE2ComputingServiceTotalJobs"] = {Text(running + waiting + suspended)};
      service["GLUE2ComputingServiceRunningJobs"] = {Text(running)};
      service["GLUE2ComputingServiceWaitingJobs"] = {Text(waiting)};
      service["GLUE2ComputingServiceSuspendedJobs"] = {Text(suspended)};
    }
  }

  void AddEndpoint() {
    Attributes& endpoint = Add(endpoint_dn_, {"GLUE2Endpoint", "GLUE2ComputingEndpoint"});
    endpoint["GLUE2EndpointID"] = {EndpointId()};
    endpoint["GLUE2EntityName"] = {profile_.site};  // so that a contact is found by a site's name in one question
    endpoint["GLUE2EndpointURL"] = {Url()};
    endpoint["GLUE2EndpointInterfaceName"] = {"org.sekisho.gatekeeper"};
    endpoint["GLUE2EndpointTechnology"] = {"grpc"};
    endpoint["GLUE2EndpointCapability"] = {"executionmanagement.jobexecution", "executionmanagement.jobdescription",
                                           "executionmanagement.jobmanagement"};
    endpoint["GLUE2EndpointImplementor"] = {"Sekisho"};
    endpoint["GLUE2EndpointImplementationName"] = {"sekisho"};
    SetIf(endpoint, "GLUE2EndpointImplementationVersion", state_.version());
    endpoint["GLUE2EndpointQualityLevel"] = {profile_.quality};
    const bool is_odd = health_.is_connected && !state_.has_allocator();
    endpoint["GLUE2EndpointHealthState"] = {!health_.is_connected ? "critical" : is_odd ? "warning" : "ok"};
    SetIf(endpoint, "GLUE2EndpointHealthStateInfo",
          is_odd ? "the allocator does not answer: jobs wait" : health_.info);
    endpoint["GLUE2EndpointServingState"] = {health_.is_connected ? "production" : "closed"};
    if (state_.started_ms() > 0) {
      endpoint["GLUE2EndpointStartTime"] = {IsoTime(state_.started_ms())};
    }
    endpoint["GLUE2EndpointServiceForeignKey"] = {ServiceId()};
    endpoint["GLUE2ComputingEndpointComputingServiceForeignKey"] = {ServiceId()};
    endpoint["GLUE2ComputingEndpointJobDescription"] = {"globus:rsl"};
    endpoint["GLUE2ComputingEndpointStaging"] = {"none"};
    if (!profile_.access.empty()) {
      const std::string id = Id("AccessPolicy", profile_.site);
      Attributes& policy = Add(ChildDn("GLUE2PolicyID", id, endpoint_dn_), {"GLUE2Policy", "GLUE2AccessPolicy"});
      policy["GLUE2PolicyID"] = {id};
      policy["GLUE2PolicyScheme"] = {"basic"};
      policy["GLUE2PolicyRule"] = profile_.access;
      policy["GLUE2AccessPolicyEndpointForeignKey"] = {EndpointId()};
    }
  }

  void AddManager() {
    int64_t slots = 0, used = 0;
    for (const ResourceState& resource : state_.resource()) {
      slots += resource.processors_up();
      used += resource.processors_up() - resource.processors_free();
    }
    Attributes& manager = Add(manager_dn_, {"GLUE2Manager", "GLUE2ComputingManager"});
    manager["GLUE2ManagerID"] = {ManagerId()};
    manager["GLUE2ManagerProductName"] = {"Sekisho"};
    SetIf(manager, "GLUE2ManagerProductVersion", state_.version());
    manager["GLUE2ManagerServiceForeignKey"] = {ServiceId()};
    manager["GLUE2ComputingManagerComputingServiceForeignKey"] = {ServiceId()};
    manager["GLUE2ComputingManagerTotalSlots"] = {Text(slots)};
    manager["GLUE2ComputingManagerTotalLogicalCPUs"] = {Text(slots)};
    manager["GLUE2ComputingManagerSlotsUsedByGridJobs"] = {Text(used)};
    manager["GLUE2ComputingManagerHomogeneous"] = {state_.resource_size() == 1 ? "true" : "false"};
    AddGroup("ExecutionEnvironments", manager_dn_);
    if (state_.mpi_size() > 0) {
      AddGroup("ApplicationEnvironments", manager_dn_);
    }
  }

  // What GLUE has no class for.
  void AddNetwork() {
    if (!state_.network().empty()) {
      Attributes& extension = Add(ChildDn("GLUE2ExtensionLocalID", "network", service_dn_), {"GLUE2Extension"});
      extension["GLUE2ExtensionLocalID"] = {"network"};
      extension["GLUE2ExtensionKey"] = {"org.sekisho.network"};
      extension["GLUE2ExtensionValue"] = {state_.network()};
      extension["GLUE2ExtensionEntityForeignKey"] = {ServiceId()};
    }
  }

  void AddEnvironment(const ResourceState& resource) {
    Attributes& environment =
        Add(ChildDn("GLUE2ResourceID", EnvironmentId(resource.name()),
                    ChildDn("GLUE2GroupID", "ExecutionEnvironments", manager_dn_)),
            {"GLUE2Resource", "GLUE2ExecutionEnvironment"});
    const std::string prefix = "GLUE2ExecutionEnvironment";
    environment["GLUE2ResourceID"] = {EnvironmentId(resource.name())};
    environment["GLUE2EntityName"] = {resource.name()};
    environment["GLUE2ResourceManagerForeignKey"] = {ManagerId()};
    environment[prefix + "ComputingManagerForeignKey"] = {ManagerId()};
    environment[prefix + "Platform"] = {
        resource.architecture().empty() ? "UNDEFINEDVALUE" : glue::Platform(resource.architecture())};
    environment[prefix + "OSFamily"] = {OsFamily(resource.os())};
    SetIf(environment, prefix + "OSName", resource.os());
    environment[prefix + "MainMemorySize"] = {Text(resource.memory_mb() > 0 ? resource.memory_mb() : kUnknownNumber)};
    if (resource.clock_mhz() > 0) {
      environment[prefix + "CPUClockSpeed"] = {Text(resource.clock_mhz())};
    }
    environment[prefix + "LogicalCPUs"] = {Text(resource.processors_per_node())};
    environment[prefix + "TotalInstances"] = {Text(resource.nodes())};
    environment[prefix + "UsedInstances"] = {Text(resource.nodes_used())};
    environment[prefix + "UnavailableInstances"] = {Text(resource.nodes() - resource.nodes_up())};
    environment[prefix + "ConnectivityIn"] = {Flag(profile_.nodes_are_reached)};
    environment[prefix + "ConnectivityOut"] = {Flag(profile_.nodes_reach_out)};
    std::vector<std::string> more = {"FreeSlots=" + Text(resource.processors_free()),
                                     "TotalSlots=" + Text(resource.processors_up())};
    for (const std::string& tag : resource.tag()) {
      more.push_back("Tag=" + tag);
    }
    environment["GLUE2EntityOtherInfo"] = std::move(more);
  }

  void AddApplication(const std::string& name) {
    const std::string id = Id("ApplicationEnvironment", name);
    Attributes& application = Add(ChildDn("GLUE2ApplicationEnvironmentID", id,
                                          ChildDn("GLUE2GroupID", "ApplicationEnvironments", manager_dn_)),
                                  {"GLUE2ApplicationEnvironment"});
    const std::string prefix = "GLUE2ApplicationEnvironment";
    application[prefix + "ID"] = {id};
    application[prefix + "AppName"] = {name};
    application[prefix + "Description"] = {"MPI for jobs of job_type mpi and mpi_type " + name};
    application[prefix + "ComputingManagerForeignKey"] = {ManagerId()};
  }

  void AddShare(const ShareState& share) {
    Attributes& entry = Add(ChildDn("GLUE2ShareID", ShareId(share.service()), service_dn_),
                            {"GLUE2Share", "GLUE2ComputingShare"});
    const std::string prefix = "GLUE2ComputingShare";
    entry["GLUE2ShareID"] = {ShareId(share.service())};
    entry["GLUE2EntityName"] = {share.service()};
    entry["GLUE2ShareServiceForeignKey"] = {ServiceId()};
    entry["GLUE2ShareEndpointForeignKey"] = {EndpointId()};
    entry[prefix + "ComputingServiceForeignKey"] = {ServiceId()};
    entry[prefix + "ComputingEndpointForeignKey"] = {EndpointId()};
    SetIf(entry, prefix + "MappingQueue", share.queue());
    entry[prefix + "SchedulingPolicy"] = {"fifo"};
    entry[prefix + "TotalJobs"] = {Text(share.running() + share.waiting())};
    entry[prefix + "RunningJobs"] = {Text(share.running() - share.suspended())};
    entry[prefix + "SuspendedJobs"] = {Text(share.suspended())};
    entry[prefix + "WaitingJobs"] = {Text(share.waiting())};
    entry[prefix + "UsedSlots"] = {Text(share.slots_used())};
    entry[prefix + "RequestedSlots"] = {Text(share.slots_requested())};
    entry[prefix + "EstimatedAverageWaitingTime"] = {Text(share.average_wait_s())};
    if (state_.wall_time_max_s() > 0) {
      entry[prefix + "MaxWallTime"] = {Text(state_.wall_time_max_s())};
    }
    bool has_nodes = share.has_engine();
    if (!share.has_engine()) {
      int64_t free = 0, most = 0;
      std::vector<std::string> environments;
      for (const ResourceState& resource : state_.resource()) {
        const auto& queues = resource.queue();
        if (share.queue().empty() || std::find(queues.begin(), queues.end(), share.queue()) != queues.end()) {
          free += resource.processors_free();
          most = std::max(most, int64_t{resource.processors_per_node()} * resource.nodes());
          has_nodes |= resource.nodes_up() > 0;
          environments.push_back(EnvironmentId(resource.name()));
        }
      }
      entry[prefix + "FreeSlots"] = {Text(free)};
      entry[prefix + "MaxSlotsPerJob"] = {Text(most)};
      SetIf(entry, "GLUE2ShareResourceForeignKey", environments);
      SetIf(entry, prefix + "ExecutionEnvironmentForeignKey", environments);
    }
    entry[prefix + "ServingState"] = {has_nodes ? "production" : "queueing"};
  }

  void AddActivity(const ActivityState& activity) {
    const std::string id = Id("ComputingActivity", profile_.site + "/" + activity.job_id());
    Attributes& entry =
        Add(ChildDn("GLUE2ActivityID", id, ChildDn("GLUE2GroupID", "ComputingActivities", endpoint_dn_)),
            {"GLUE2Activity", "GLUE2ComputingActivity"});
    const std::string prefix = "GLUE2ComputingActivity";
    entry["GLUE2ActivityID"] = {id};
    entry["GLUE2ActivityEndpointForeignKey"] = {EndpointId()};
    entry["GLUE2ActivityShareForeignKey"] = {ShareId(activity.service())};
    entry[prefix + "ComputingEndpointForeignKey"] = {EndpointId()};
    entry[prefix + "ComputingShareForeignKey"] = {ShareId(activity.service())};
    entry[prefix + "State"] = {activity.started_ms() > 0 ? "bes:running" : "bes:pending"};
    if (activity.state() == proto::SUSPENDED) {
      entry[prefix + "State"].push_back("org.sekisho:suspended");
    }
    entry[prefix + "Owner"] = {activity.subject()};
    entry[prefix + "IDFromEndpoint"] = {activity.job_id()};
    entry[prefix + "LocalIDFromManager"] = {activity.job_id()};
    SetIf(entry, prefix + "Queue", activity.queue());
    entry[prefix + "RequestedSlots"] = {Text(activity.slots())};
    entry[prefix + "SubmissionTime"] = {IsoTime(activity.submitted_ms())};
    if (activity.started_ms() > 0) {
      entry[prefix + "StartTime"] = {IsoTime(activity.started_ms())};
    }
  }

  const Profile& profile_;
  const SiteState& state_;
  const Health& health_;
  const std::string host_;
  const std::string domain_dn_, services_dn_, service_dn_, endpoint_dn_, manager_dn_;
  std::vector<Entry> entries_;
};

}  // namespace

std::string SiteDn(const std::string& site, const std::string& base) {
  return ChildDn("GLUE2DomainID", "urn:ad:" + glue::ToUrnPart(site), base);
}

std::vector<Entry> MakeEntries(const Profile& profile, const SiteState& state, const Health& health,
                               const std::string& base) {
  return Site(profile, state, health, base).Take();
}

}  // namespace sekisho::directory
