# SPDX-License-Identifier: Apache-2.0
# The files that differ between hosts: names, accounts, certificates, configuration.  Written below the lab's
# state directory, copied into each host when it comes up.
import json
import os

import directory
import slurm
from state import write_file

_SYSTEM_UIDS_BELOW = 1000


def write(world, root, host, authority):
    """Everything of one host's own, below the directory `root`."""
    etc = f"{root}/etc"
    for path in ("etc/sekisho", "etc/grid-security", "var/lib/sekisho", "var/log/sekisho", "run/sekisho"):
        os.makedirs(f"{root}/{path}")
    _accounts(world, host, root)
    write_file(f"{etc}/hostname", f"{host.name}\n")
    write_file(f"{etc}/hosts", _hosts(world, host))
    write_file(f"{etc}/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files\n")
    write_file(f"{etc}/resolv.conf", "# the lab has no name server\n")
    authority.install(f"{etc}/grid-security", host, world)
    site = world.site_of(host)
    if host.role in ("dmz", "head"):
        mapping = site.outside_map if host.role == "dmz" else site.inside_map
        lines = [f'"{world.users[user].subject}" {account}\n' for user, account in mapping.items()]
        write_file(f"{etc}/grid-security/grid-mapfile", "".join(lines))
    if site is not None and site.slurm and host.role in ("head", "node"):
        slurm.write(site, root, host, authority.secret(f"munge-{site.name}"))
    for name, text in configuration(world, host, authority).items():
        write_file(f"{etc}/sekisho/{name}", text)


def accounts_of(world, host):
    """Names of the lab's users with an account on this host."""
    site = world.site_of(host)
    return list(world.users) if site is None else site.accounts


def make_homes(world, host, home):
    for name in accounts_of(world, host):
        path = f"{home}/{name}"
        if not os.path.isdir(path):
            os.makedirs(path)
            os.chmod(path, 0o700)
            os.chown(path, world.users[name].uid, world.users[name].uid)


def _accounts(world, host, root):
    """The machine's system accounts (daemons of packages run as them) and the lab's users."""
    passwd, group = [], []
    for lines, path in ((passwd, "/etc/passwd"), (group, "/etc/group")):
        with open(path) as file:
            for line in file:
                number = line.split(":")[2]
                if int(number) < _SYSTEM_UIDS_BELOW or line.startswith(("no", "slurm:")):
                    lines.append(line)
    for name in accounts_of(world, host):
        user = world.users[name]
        passwd.append(f"{name}:x:{user.uid}:{user.uid}:{user.common_name}:/home/{name}:/bin/bash\n")
        group.append(f"{name}:x:{user.uid}:\n")
    write_file(f"{root}/etc/passwd", "".join(passwd))
    write_file(f"{root}/etc/group", "".join(group))
    write_file(f"{root}/etc/shadow", "".join(f"{line.split(':')[0]}:*:::::::\n" for line in passwd), 0o600)


def _hosts(world, host):
    """Outside one knows the client and the sites' DMZ hosts; inside, one's own site besides."""
    known = world.free_hosts + [other for other in world.hosts if other.role == "dmz"]
    site = world.site_of(host)
    if site is not None:
        if host.role == "dmz":  # it must name whom it reaches through the pinhole
            known += [world.host(hole.target) for hole in site.pinholes]
        else:
            known += [other for other in site.hosts if other.role != "dmz"]
    lines = ["127.0.0.1 localhost\n", "::1 localhost ip6-localhost\n"]
    return "".join(lines + [f"{other.address} {other.name}\n" for other in known])


def configuration(world, host, authority):
    """{file name: text} of /etc/sekisho.  Only what differs from the defaults is said."""
    site = world.site_of(host)
    if host.role == "directory":
        return {"index.json": directory.index_configuration(world, authority)}
    if site is None:
        known = {
            name: {"contact": f"{other.prefix}-dmz:2119", "queue_server": authority.host_subject(f"{other.prefix}-head")}
            for name, other in world.sites.items()
        }
        return {"sites.json": _json({"sites": known, **directory.client_directory(world)})}
    head, dmz = f"{site.prefix}-head", f"{site.prefix}-dmz"
    if host.role == "dmz":
        # Without a pinhole the queue server is an endpoint of the relay here, which the inside has dialled.
        qserver = {"qserver": f"{head}:{site.pinholes[0].port}"} if site.pinholes else {
            "qserver": f"{dmz}:{_QSERVER_PORT}", "qserver_subject": authority.host_subject(head)}  # fmt: skip
        return {
            "gatekeeper.json": _json({"site": site.name, **_services(site)}),
            "jobmanager.json": _json({"site": site.name, "contact": f"{dmz}:2119", **qserver}),
            "nxproxy.json": _json(_relay(world, site, authority, head)),
            "nxproxy-server": f"{dmz}:7514 {site.name}\n",
            **({"directory.json": directory.site_configuration(world, site, qserver)} if world.directory else {}),
        }
    if host.role == "head":
        with open(site.inventory) as file:
            inventory = file.read()
        has_inner = site.has_closed_nodes or not site.pinholes
        inner = {"nxproxy-inner.json": _json(_inner_relay(world, site, authority, dmz, head))} if has_inner else {}
        return inner | {
            "nxproxy-server": f"{dmz}:7514 {site.name}\n",
            "qserver.json": _json(
                {
                    "site": site.name,
                    "jobmanager": [authority.service_subject("jobmanager", dmz)],
                    "gatekeeper": [authority.host_subject(dmz)],
                    "directory": [authority.host_subject(dmz)],
                    "administrator": [world.users[name].subject for name in site.administrators],
                    "firewall": {"dmz_address": [world.host(dmz).address]},
                    "relay": {"address": f"{dmz}:7514"} | ({"inner": f"{head}:7514"} if site.has_closed_nodes else {}),
                    **({"slurm": {}} if site.slurm else {}),
                }
            ),
            "allocator.json": _json({"policy": site.policy, "inventory": "/etc/sekisho/inventory"}),
            "inventory": inventory,
        }
    if host.role == "node":
        agent = {"qserver": f"{head}:7513", "output_limit_mb": 256}  # of memory
        return {"agent.json": _json(agent), "nxproxy-server": f"{dmz}:7514 {site.name}\n"}
    return {}


_QSERVER_PORT = 7512


def _services(site):
    names = ("jobmanager", "jobmanager-agent", "jobmanager-slurm")
    return {"service": [{"name": name} for name in names]} if site.slurm else {}


def _relay(world, site, authority, head):
    """The outer relay: the lab's users bind public ports, and the head node the queue server's."""
    binds = [{"subject": ["/O=Sekisho Lab/OU=People/*"], "ports": "1024-19999"}]
    if not site.pinholes:
        binds.append({"subject": [authority.host_subject(head)], "ports": str(_QSERVER_PORT)})
    return {
        "site": site.name,
        "policy": {
            # Ranks of every site may meet here.
            "token_issuer": [_issuer(other, authority) for other in world.sites.values()],
            "public_bind": binds,
        },
    }


def _issuer(site, authority):
    return {"subject": authority.host_subject(f"{site.prefix}-head"), "site": site.name}


def _inner_relay(world, site, authority, dmz, head):
    """The head node's: the way out for nodes that have none; and where there is no pinhole it opens the queue
    server's port at the outer relay, for the DMZ host alone."""
    expose = [{"target": f"127.0.0.1:{_QSERVER_PORT}", "port": _QSERVER_PORT, "allow": world.host(dmz).address}]
    return {
        "site": site.name,
        "upstream": {"address": f"{dmz}:7514"},
        **({"policy": {"token_issuer": [_issuer(site, authority)]}} if site.has_closed_nodes else {"listen": "none"}),
        **({} if site.pinholes else {"expose": expose}),
    }


def _json(values):
    return json.dumps(values, indent=2) + "\n"
