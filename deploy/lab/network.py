# SPDX-License-Identifier: Apache-2.0
# Links, addresses, routes and firewalls.  The keeper's own network namespace is the internet: it routes between
# the client, the directory and the sites' DMZ networks, each a bridge there.  A router bridges its inside and drops what comes in.
#
#   client ── internet ──┬── bridge siteA ──┬── a-dmz
#                        │                  └── a-router ── bridge inside ── a-head, a-n1, a-n2
#                        └── bridge siteB ──── ...
import os
import subprocess

import wan

OUTSIDE = "outside"  # the names that hosts see
INSIDE = "inside"


def _ip(lines):
    _run(["ip", "-batch", "-"], "\n".join(lines) + "\n")


def _run(command, text):
    done = subprocess.run(command, input=text, text=True, capture_output=True)
    if done.returncode != 0:
        raise OSError(f"{command[0]}: {(done.stderr or done.stdout).strip()}")


def _set(path, value):
    if os.path.exists(path):
        with open(path, "w") as file:
            file.write(value)


def _forward():
    _set("/proc/sys/net/ipv4/ip_forward", "1")
    # Where a container engine has loaded br_netfilter, bridged frames would meet our routing rules.
    _set("/proc/sys/net/bridge/bridge-nf-call-iptables", "0")


def connect(world, pids):
    """In the internet's namespace: all links between hosts, which are given by their init's pid."""
    _forward()
    lines = ["link set lo up"]
    for host in world.free_hosts:
        lines += _cable(host.name, pids[host.name], OUTSIDE)
        lines += [f"addr add {host.internet_address} dev {host.name}", f"link set {host.name} up"]
    for site in world.sites.values():
        lines += [
            f"link add {site.name} type bridge",
            f"addr add {site.internet_address}/{site.outside.prefixlen} dev {site.name}",
            f"link set {site.name} up",
        ]
        router = f"{site.prefix}-router"
        for host in site.hosts:
            if host.outside:
                lines += _cable(host.name, pids[host.name], OUTSIDE)
                lines += [f"link set {host.name} master {site.name} up"]
            elif host.inside:
                lines += [
                    f"link add {host.name} netns {pids[router]} type veth"
                    f" peer name {INSIDE} netns {pids[host.name]}"
                ]
        # Were a site's inside addresses reachable from outside, this would be the way: the router decides.  Of sites
        # that have the same ones it could only be the way to one of them.
        if not world.overlapping(site):
            lines += [f"route add {site.inside} via {site.outside[2]}"]
    _ip(lines)


def connect_wan(world):
    """In the internet's namespace, once the emulator has made its devices."""
    # The way back does not lead through the device that a packet comes out of.
    for device in ("all", *wan.devices(world)):
        _set(f"/proc/sys/net/ipv4/conf/{device}/rp_filter", "0")
    _ip(wan.routes(world))


def _cable(name, pid, far_name):
    return [f"link add {name} type veth peer name {far_name} netns {pid}"]


def configure(world, host):
    """In the host's namespace, once its links are there."""
    site = world.site_of(host)
    lines = ["link set lo up"]
    if host.role == "router":
        lines += [
            f"link add {INSIDE} type bridge",
            f"addr add {host.inside} dev {INSIDE}",
            f"link set {INSIDE} up",
        ]
        for other in site.hosts:
            if other.inside and other is not host:
                lines += [f"link set {other.name} master {INSIDE} up"]
        lines += _leg(host.outside, OUTSIDE, site.internet_address)
        # The insides of other sites do not exist for this one.
        for other in world.sites.values():
            if other is not site and other not in world.overlapping(site):
                lines += [f"route add unreachable {other.inside}"]
        _forward()
    elif host.inside:
        lines += _leg(host.inside, INSIDE, str(site.inside[1]))
    elif site:
        lines += _leg(host.outside, OUTSIDE, site.internet_address)
        lines += [f"route add {site.inside} via {site.outside[2]}"]
    else:
        lines += _leg(host.outside, OUTSIDE, host.internet_address.split("/")[0])
    _ip(lines)
    if host.role == "router":
        _set("/proc/sys/net/ipv4/icmp_ratelimit", "0")  # every "no route" is said
        _run(["nft", "-f", "-"], firewall(world, site))


def _leg(address, device, gateway):
    return [f"addr add {address} dev {device}", f"link set {device} up", f"route add default via {gateway}"]


def firewall(world, site):
    """The router's rules.  Connection mark 1: through a pinhole; 2: opened from inside.

    What the drop policy lets through is counted a second time, later and by another rule (`audit`): other_accepted
    stays 0 only if the rules above it are right.  What fits no connection is dropped, not rejected, as firewalld does: a
    connection that takes the port of one just closed may begin so, and is to try again rather than to fail."""
    address = lambda name: world.host(name).address
    pinholes = "\n".join(
        f"    ct state new ip saddr {address(hole.source)} ip daddr {address(hole.target)} "
        f"tcp dport {hole.port} ct mark set 1 counter name pinhole_connections"
        for hole in site.pinholes
    )
    dial_out = ""
    if site.dial_out:
        sources = ", ".join(address(name) for name in site.dial_out)
        dial_out = f'    iifname "{INSIDE}" ip saddr {{ {sources} }} ct state new ct mark set 2 accept'
    return f"""
table inet lab {{
  counter pinhole_connections {{ }}
  counter pinhole_packets {{ }}
  counter other_connections {{ }}
  counter other_packets {{ }}
  counter dropped_connections {{ }}
  counter dropped_packets {{ }}

  chain forward {{
    type filter hook forward priority filter; policy drop;
    iifname "{INSIDE}" ct state established,related accept
    iifname "{INSIDE}" oifname "{INSIDE}" accept
    iifname "{INSIDE}" ct state invalid drop
{dial_out}
    iifname "{INSIDE}" reject with icmpx admin-prohibited
{pinholes}
    ct mark 1 counter name pinhole_packets accept
    ct mark 2 ct state established,related accept
    ct state new counter name dropped_connections
    counter name dropped_packets
  }}
  chain input {{
    type filter hook input priority filter; policy drop;
    iifname "lo" accept
    iifname "{INSIDE}" accept
    ct mark 2 ct state established,related accept
    ct state new counter name dropped_connections
    counter name dropped_packets
  }}
  chain output {{
    type filter hook output priority filter; policy accept;
    ct state new ct mark set 2
  }}
  chain audit_forward {{
    type filter hook forward priority filter + 10; policy accept;
    iifname "{OUTSIDE}" ct mark != 1 ct mark != 2 jump audit
  }}
  chain audit_input {{
    type filter hook input priority filter + 10; policy accept;
    iifname "{OUTSIDE}" ct mark != 2 jump audit
  }}
  chain audit {{
    ct state new counter name other_connections
    counter name other_packets
  }}
  chain hide {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {site.inside} oifname "{OUTSIDE}" masquerade
  }}
}}
"""


COUNTERS = ("pinhole_accepted", "other_accepted", "dropped")


def read_counters():
    """In a router's namespace: {"dropped": {"connections": n, "packets": n}, ...}."""
    import json

    done = subprocess.run(["nft", "-j", "list", "counters", "table", "inet", "lab"],
                          capture_output=True, check=True)  # fmt: skip
    values = {}
    for entry in json.loads(done.stdout)["nftables"]:
        if "counter" in entry:
            values[entry["counter"]["name"]] = entry["counter"]["packets"]
    return {
        name: {
            "connections": values[f"{name.split('_')[0]}_connections"],
            "packets": values[f"{name.split('_')[0]}_packets"],
        }
        for name in COUNTERS
    }
