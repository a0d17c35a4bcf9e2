# SPDX-License-Identifier: Apache-2.0
# The world between the sites: the `wan` section of the site file, and the emulator that does what it says.
# Each site, the client and the directory have a TUN device in the internet's namespace.  What comes from a site's bridge is routed
# into that site's device, whatever its target; the emulator delays it and lets it come out of the target's.
import dataclasses
import itertools
import json
import os
import socket
import subprocess

import state

PROGRAM = "sekisho-lab-wan"
FIRST_TABLE = 100  # of the routing tables, one a device
MODES = ("sleep", "busy")


@dataclasses.dataclass
class Link:
    """Between two places, the same in both directions."""

    rtt_ms: float
    rate_mbps: float  # 0 = no limit
    loss: float  # probability of a packet in one direction
    queue_kib: int  # 0 = one bandwidth-delay product

    def __str__(self):
        rate = f"{self.rate_mbps:g} Mb/s" if self.rate_mbps else "no rate limit"
        return f"rtt {self.rtt_ms:g} ms, {rate}, loss {100 * self.loss:g} %"


@dataclasses.dataclass
class Wan:
    links: dict  # (place, place) -> Link; a place is a site or the name of a host at none
    seed: int
    mode: str
    compensate_us: float

    def __str__(self):
        return "; ".join(f"{one}-{other} {link}" for (one, other), link in self.links.items())


def read(reader, places):
    """The `wan` section, of which `reader` holds the keys."""
    usual = _link(reader.section("default"), None)
    links = {pair: usual for pair in itertools.combinations(places, 2)}
    for entry in reader.list("pairs", []):
        between = entry.value("between")
        pair = next((pair for pair in links if isinstance(between, list) and sorted(map(str, between)) == sorted(pair)), None)
        if pair is None:
            raise entry.error("between", f"expected two of: {' '.join(places)}; got {json.dumps(between)}")
        links[pair] = _link(entry, usual)
    mode = reader.text("mode", "sleep")
    if mode not in MODES:
        raise reader.error("mode", f"expected {' or '.join(MODES)}, got '{mode}'")
    wan = Wan(links, reader.quantity("seed", 1, 0, 2**53), mode, reader.quantity("compensate_us", 0, 0, 10_000))
    reader.done()
    return wan


def _link(reader, usual):
    rtt_ms = reader.quantity("rtt_ms", usual.rtt_ms if usual else None, 0, 100_000)
    rate = reader.value("rate_mbps", usual.rate_mbps if usual else "none")
    if rate == "none":
        rate = 0
    elif rate != 0:
        rate = reader.in_range("rate_mbps", rate, 0.001, 1_000_000)
    loss = reader.quantity("loss", usual.loss if usual else 0, 0, 1)
    queue = reader.quantity("queue_kib", usual.queue_kib if usual else 0, 0, 1_000_000)
    reader.done()
    return Link(rtt_ms, rate, loss, queue)


def device(place):
    return f"wan-{place}"[:15]


def devices(world):
    return [device(place) for place in world.places]


def emulator_file(world):
    """What the emulator is told."""
    places = {host.name: [host.outside] for host in world.free_hosts}
    places |= {name: [site.outside, site.inside] for name, site in world.sites.items()}
    lines = []
    for place, networks in places.items():
        lines.append(f"node {place} device={device(place)} prefix={','.join(map(str, networks))}")
    for (one, other), link in world.wan.links.items():
        keys = f"delay_us={link.rtt_ms * 500:.3f} loss={link.loss:.9f}"
        if link.rate_mbps:
            keys += f" rate_mbps={link.rate_mbps:.6f}"
        if link.queue_kib:
            keys += f" queue_kib={link.queue_kib}"
        lines += [f"link {one} {other} {keys}", f"link {other} {one} {keys}"]
    return "\n".join(lines) + "\n"


def routes(world):
    """Arguments of `ip`, in the internet's namespace, once the devices are there.  Without the emulator there is no
    way: better than a fast one that nobody has asked for."""
    lines = []
    for number, place in enumerate(world.places):
        table = FIRST_TABLE + number
        lines += [
            f"route add default dev {device(place)} table {table}",
            f"route add unreachable default metric 1000 table {table}",
            f"rule add iif {place} lookup {table}",
        ]
    return lines


def start(name, world, programs):
    """In the keeper, whose child the emulator becomes: returns when its devices are there."""
    directory = state.directory(name)
    program = f"{programs}/{PROGRAM}"
    if not os.access(program, os.X_OK):
        raise state.LabError(f"{programs} lacks {PROGRAM}, which 'wan' needs; build it with: ninja {PROGRAM}")
    state.write_file(f"{directory}/wan.conf", emulator_file(world))
    ready_read, ready_write = os.pipe()
    with open(f"{directory}/wan.log", "ab") as log:
        process = subprocess.Popen(
            [program, "pairs", f"{directory}/wan.conf", "--ready-fd", str(ready_write),
             "--control", f"{directory}/wan.socket", "--seed", str(world.wan.seed), "--mode", world.wan.mode,
             "--compensate-us", str(world.wan.compensate_us),
             *(["--fifo", "10"] if world.wan.mode == "sleep" else [])],  # it works for microseconds, then sleeps
            pass_fds=[ready_write], stdin=subprocess.DEVNULL, stdout=log, stderr=log)  # fmt: skip
    os.close(ready_write)
    state.write_process(f"{directory}/wan", process.pid)
    with os.fdopen(ready_read) as answers:
        if not answers.read().endswith("ready\n"):
            with open(f"{directory}/wan.log") as log:
                raise state.LabError(f"the emulator did not start: {log.read().strip()}")


def counters(name):
    """What the emulator has carried so far; OSError if it does not answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(5)
        connection.connect(f"{state.directory(name)}/wan.socket")
        text = b""
        while chunk := connection.recv(1 << 16):
            text += chunk
    return json.loads(text)


def status(name, world):
    """For `lab status`: None if there are plain links."""
    if world.wan is None:
        return None
    pid = state.read_process(f"{state.directory(name)}/wan")
    answer = {"up": False, "pid": pid, "setting": str(world.wan), "counters": None}
    if pid is not None:
        try:
            answer["counters"] = counters(name)
            answer["up"] = True
        except (OSError, ValueError):
            pass
    return answer
