# SPDX-License-Identifier: Apache-2.0
# GLUE 2.0's rules, read from the schema file that the LDAP server loads, and the enumerations and forms that the model
# (GFD.147) adds.  Knows nothing of Sekisho.
import re

SCHEMA = "/etc/ldap/schema/GLUE20.schema"
INTEGER = "1.3.6.1.4.1.1466.115.121.1.27"

# Attribute -> values; only closed enumerations.
ENUMERATIONS = {
    "GLUE2ServiceQualityLevel": "development testing pre-production production",
    "GLUE2EndpointQualityLevel": "development testing pre-production production",
    "GLUE2EndpointHealthState": "ok warning critical unknown other",
    "GLUE2EndpointServingState": "closed draining production queueing",
    "GLUE2ComputingShareServingState": "closed draining production queueing",
    "GLUE2ComputingEndpointStaging": "none stagingin stagingout staginginout",
    "GLUE2ComputingManagerHomogeneous": "true false undefined",
    "GLUE2ExecutionEnvironmentConnectivityIn": "TRUE FALSE",
    "GLUE2ExecutionEnvironmentConnectivityOut": "TRUE FALSE",
    "GLUE2ExecutionEnvironmentVirtualMachine": "TRUE FALSE",
}
# Base class -> its id.
IDS = {
    "GLUE2Domain": "GLUE2DomainID", "GLUE2Service": "GLUE2ServiceID", "GLUE2Endpoint": "GLUE2EndpointID",
    "GLUE2Share": "GLUE2ShareID", "GLUE2Manager": "GLUE2ManagerID", "GLUE2Resource": "GLUE2ResourceID",
    "GLUE2Policy": "GLUE2PolicyID", "GLUE2ApplicationEnvironment": "GLUE2ApplicationEnvironmentID",
    "GLUE2Activity": "GLUE2ActivityID", "GLUE2Group": "GLUE2GroupID",
}  # fmt: skip
# Foreign key -> the class that it names, as its own name says: GLUE2<class>[<role>]<target>ForeignKey.
TARGETS = {
    "AdminDomain": "GLUE2AdminDomain", "ComputingService": "GLUE2ComputingService", "Service": "GLUE2Service",
    "ComputingEndpoint": "GLUE2ComputingEndpoint", "Endpoint": "GLUE2Endpoint", "ComputingManager": "GLUE2ComputingManager",
    "ComputingShare": "GLUE2ComputingShare", "Share": "GLUE2Share",
    "Manager": "GLUE2Manager", "ExecutionEnvironment": "GLUE2ExecutionEnvironment", "Resource": "GLUE2Resource",
}  # fmt: skip
URN = re.compile(r"urn:[a-z0-9][a-z0-9-]{0,31}:([A-Za-z0-9()+,.:=@;$_!*'/-]|%[0-9A-F]{2})+")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class Schema:
    def __init__(self, path=SCHEMA):
        with open(path) as file:
            text = "\n".join(line for line in file.read().splitlines() if not line.startswith("#"))
        self.attributes, self.classes = {}, {}
        for kind, body in re.findall(r"^(attributetype|objectclass) \(\s*(.*?)^ ?\)", text, re.M | re.S | re.I):
            names = re.search(r"NAME \(([^)]*)\)", body) or re.search(r"NAME ('[^']*')", body)
            for name in re.findall(r"'([^']*)'", names[1]):
                if kind.lower() == "attributetype":
                    self.attributes[name] = {
                        "is_single": "SINGLE-VALUE" in body,
                        "is_integer": INTEGER in body,
                    }
                else:
                    self.classes[name] = {
                        "parent": (re.search(r"SUP (\w+)", body) or [None, ""])[1],
                        "must": _names(body, "MUST"),
                        "may": _names(body, "MAY"),
                    }

    def lineage(self, name):
        while name in self.classes:
            yield name
            name = self.classes[name]["parent"]


def _names(body, word):
    found = re.search(rf"{word} \(([^)]*)\)", body) or re.search(rf"{word} (\w+)", body)
    return set(re.findall(r"GLUE2\w+", found[1])) if found else set()


def problems(schema, entries):
    """What is wrong with the entries, a sentence each."""
    ids = {}  # class -> ids of its entries
    for entry in entries:
        for name in entry["objectClass"]:
            for ancestor in schema.lineage(name):
                for value in entry.get(IDS.get(ancestor, ""), []):
                    for child in schema.lineage(name):
                        ids.setdefault(child, set()).add(value)
    for entry in entries:
        for problem in _problems_of(schema, entry, ids):
            yield f"{entry['dn'][0]}: {problem}"


def _problems_of(schema, entry, ids):
    classes = [name for name in entry["objectClass"] if name.startswith("GLUE2")]
    lineage = {ancestor for name in classes for ancestor in schema.lineage(name)}
    if not classes:
        return
    must = set().union(*(schema.classes[name]["must"] for name in lineage))
    allowed = must.union(*(schema.classes[name]["may"] for name in lineage))
    for name in must - set(entry):
        yield f"{name} is missing"
    for name, values in entry.items():
        if not name.startswith("GLUE2"):
            continue
        if name not in allowed:
            yield f"{name} is not of {' '.join(classes)}"
            continue
        rule = schema.attributes[name]
        if rule["is_single"] and len(values) > 1:
            yield f"{name} has several values"
        for value in values:
            yield from _problems_of_value(name, value, rule, ids)
    base = next((IDS[name] for name in IDS if name in lineage), None)
    if base is None:
        yield "its class has no id"
    elif not entry["dn"][0].lower().startswith(base.lower() + "="):
        yield f"its name does not begin with {base}"
    if "GLUE2Group" not in classes:
        for name in ("GLUE2EntityCreationTime", "GLUE2EntityValidity"):
            if name not in entry:
                yield f"{name} is missing"


def _problems_of_value(name, value, rule, ids):
    if value == "":
        yield f"{name} is empty"
    if rule["is_integer"] and not re.fullmatch(r"\d+", value):
        yield f"{name}: '{value}' is no whole number"
    if name in ENUMERATIONS and value not in ENUMERATIONS[name].split():
        yield f"{name}: '{value}' is none of {ENUMERATIONS[name]}"
    if name in IDS.values() and name != "GLUE2GroupID" and not URN.fullmatch(value):
        yield f"{name}: '{value}' is no URN"
    if name.endswith("Time") and not rule["is_integer"] and not TIME.fullmatch(value):
        yield f"{name}: '{value}' is no time"
    if name.endswith("ForeignKey"):
        target = next(TARGETS[part] for part in sorted(TARGETS, key=len, reverse=True)
                      if name.endswith(part + "ForeignKey"))  # fmt: skip
        if value not in ids.get(target, set()):
            yield f"{name}: '{value}' is no {target} that is published"
