# SPDX-License-Identifier: Apache-2.0
# The site file, checked and turned into hosts, sites and accounts.  Pure: reads one file, does nothing.
import dataclasses
import ipaddress
import json
import os
import re

import wan
from state import LabError

FIRST_NODE = 11  # the last byte of a-n1's address
USER_UIDS_FROM = 20000
UIDS_PER_LAB = 100


@dataclasses.dataclass
class Host:
    name: str
    role: str  # client, directory, router, dmz, head or node
    site: str  # "" for the client
    outside: str = ""  # address with prefix length, if it has a leg there
    inside: str = ""

    @property
    def address(self):
        """The address that its neighbours use."""
        return (self.inside if self.role in ("head", "node") else self.outside).split("/")[0]

    @property
    def internet_address(self):
        """Of a host that is at no site: the internet's end of its link."""
        network = ipaddress.IPv4Interface(self.outside).network
        return f"{network[1]}/{network.prefixlen}"


@dataclasses.dataclass
class Pinhole:
    source: str
    target: str
    port: int


@dataclasses.dataclass
class Site:
    name: str
    prefix: str
    outside: ipaddress.IPv4Network
    inside: ipaddress.IPv4Network
    pinholes: list
    dial_out: list
    outside_map: dict  # user -> account
    inside_map: dict
    policy: str
    inventory: str  # a file
    hosts: list
    slurm: bool = False  # a batch system beside the agents
    administrators: list = dataclasses.field(default_factory=list)  # users

    @property
    def has_closed_nodes(self):
        """Whether some of its nodes reach nothing outside: a relay inside is their way."""
        return any(host.role == "node" and host.name not in self.dial_out for host in self.hosts)

    @property
    def internet_address(self):
        return str(self.outside[1])

    @property
    def accounts(self):
        return sorted({*self.outside_map.values(), *self.inside_map.values()})


@dataclasses.dataclass
class User:
    name: str
    common_name: str
    uid: int

    @property
    def subject(self):
        return f"/O=Sekisho Lab/OU=People/CN={self.common_name}"


@dataclasses.dataclass
class World:
    client: Host
    directory: Host | None  # the index of all sites, if there is one
    wan: wan.Wan | None  # None: plain links
    users: dict
    sites: dict
    state: str | None = None  # a directory for all hosts' /var; None: in memory

    @property
    def hosts(self):
        return self.free_hosts + [host for site in self.sites.values() for host in site.hosts]

    @property
    def free_hosts(self):
        """Those at no site."""
        return [self.client] + ([self.directory] if self.directory else [])

    @property
    def places(self):
        """Between which the world is."""
        return [*(host.name for host in self.free_hosts), *self.sites]

    def host(self, name):
        return next(host for host in self.hosts if host.name == name)

    def site_of(self, host):
        return self.sites.get(host.site)

    def overlapping(self, site):
        """The other sites that have some of its inside addresses too."""
        return [other for other in self.sites.values() if other is not site and other.inside.overlaps(site.inside)]


def read_json(path):
    """JSON with // comments.  Errors name file and line."""
    try:
        with open(path) as file:
            text = file.read()
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from None
    # A comment is blanked, a string that holds // is not.
    text = re.sub(r'"(?:\\.|[^"\\])*"|//[^\n]*',
                  lambda match: match[0] if match[0][0] == '"' else "", text)  # fmt: skip
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise LabError(f"{path}:{error.lineno}:{error.colno}: {error.msg}") from None


def load(path, slot=0):
    """The world that the site file describes; `slot` tells the accounts of labs side by side apart."""
    top = _Reader(path, "", read_json(path))
    uid = USER_UIDS_FROM + UIDS_PER_LAB * slot
    users = {}
    for number, (name, user) in enumerate(top.object("users").items()):
        users[name] = User(name, user.text("common_name"), uid + number)
        user.done()
    client = top.object("client")
    index = top.object("directory") if top.has("directory") else None
    world = World(
        client=_free_host("client", client),
        directory=_free_host("directory", index) if index else None,
        wan=None,
        users=users,
        sites={name: _site(name, reader, path) for name, reader in top.object("sites").items()},
    )
    between = top.value("wan", "none")
    if between != "none":
        world.wan = wan.read(_Reader(path, "wan", between), world.places)
    client.done()
    if index:
        index.done()
    top.done()
    for site in world.sites.values():
        for user in {*site.outside_map, *site.inside_map, *site.accounts, *site.administrators}:
            if user not in users:
                raise LabError(f"{path}: sites.{site.name}.mapping: no user '{user}'")
    return world


def _free_host(name, reader):
    return Host(name, name, "", outside=str(ipaddress.IPv4Interface(reader.text("address"))))


def _site(name, reader, path):
    prefix = reader.text("prefix")
    outside = ipaddress.IPv4Network(reader.text("outside"))
    inside = ipaddress.IPv4Network(reader.text("inside"))

    def at(network, number):
        return f"{network[number]}/{network.prefixlen}"

    hosts = [
        Host(f"{prefix}-router", "router", name, at(outside, 2), at(inside, 1)),
        Host(f"{prefix}-dmz", "dmz", name, outside=at(outside, 10)),
        Host(f"{prefix}-head", "head", name, inside=at(inside, 10)),
    ]
    for number in range(reader.number("nodes")):
        hosts.append(
            Host(f"{prefix}-n{number + 1}", "node", name, inside=at(inside, FIRST_NODE + number))
        )
    pinholes = []
    for hole in reader.list("pinholes"):
        pinholes.append(Pinhole(hole.text("from"), hole.text("to"), hole.number("port")))
        hole.done()
    outside_map, inside_map = {}, {}
    for user, account in reader.value("mapping").items():
        pair = account if isinstance(account, dict) else {"outside": account, "inside": account}
        if "outside" in pair:
            outside_map[user] = pair["outside"]
        if "inside" in pair:
            inside_map[user] = pair["inside"]
    site = Site(
        name, prefix, outside, inside, pinholes, reader.value("dial_out"), outside_map, inside_map,
        reader.text("policy", "paper"),
        os.path.join(os.path.dirname(path), reader.text("inventory")), hosts, reader.flag("slurm"),
        reader.value("administrators", []),
    )  # fmt: skip
    reader.done()
    known = {host.name for host in hosts}
    for used in {*site.dial_out, *(h.source for h in pinholes), *(h.target for h in pinholes)}:
        if used not in known:
            raise LabError(f"{path}: sites.{name}: no host '{used}'; it has: {' '.join(sorted(known))}")
    return site


class _Reader:
    """One object of the file: takes typed values, and complains about what nobody took."""

    def __init__(self, path, where, values):
        self._path, self._where = path, where
        if not isinstance(values, dict):
            raise LabError(f"{path}: {where or 'top'}: expected an object")
        self._values = dict(values)

    def has(self, key):
        return key in self._values

    def value(self, key, default=None):
        if key not in self._values and default is None:
            raise LabError(f"{self._path}: {self._name(key)} is missing")
        return self._values.pop(key, default)

    def text(self, key, default=None):
        return self._typed(key, str, default)

    def flag(self, key):
        return self._typed(key, bool, False) if key in self._values else False

    def number(self, key):
        return self._typed(key, int, None)

    def object(self, key):
        values = self._typed(key, dict, None)
        return _Object(self._path, self._name(key), values)

    def section(self, key):
        return _Reader(self._path, self._name(key), self.value(key))

    def quantity(self, key, default, low, high):
        return self.in_range(key, self.value(key, default), low, high)

    def in_range(self, key, value, low, high):
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not low <= value <= high:
            raise self.error(key, f"expected {low} to {high}, got {json.dumps(value)}")
        return value

    def list(self, key, default=None):
        return [_Reader(self._path, f"{self._name(key)}[{number}]", value)
                for number, value in enumerate(self._typed(key, list, default))]  # fmt: skip

    def error(self, key, text):
        return LabError(f"{self._path}: {self._name(key)}: {text}")

    def done(self):
        for key in self._values:
            raise LabError(f"{self._path}: {self._name(key)} is not known")

    def _typed(self, key, kind, default):
        value = self.value(key, default)
        if not isinstance(value, kind):
            raise LabError(f"{self._path}: {self._name(key)}: expected {kind.__name__}, got {value!r}")
        return value

    def _name(self, key):
        return f"{self._where}.{key}" if self._where else key


class _Object(_Reader):
    def items(self):
        for key in list(self._values):
            yield key, _Reader(self._path, self._name(key), self._values.pop(key))
