# SPDX-License-Identifier: Apache-2.0
# What the machine remembers of a lab: one directory under /run, root's only.  A process is named by pid and
# start time, so that a number used again is never mistaken for ours.
# Imported on the fast path of `lab exec`: nothing slow in here.
import os

BASE = "/run/sekisho-lab"


class LabError(Exception):
    """Something to tell the user: what was expected, what was seen, what to do."""


def directory(name):
    return f"{BASE}/{name}"


def check_name(name):
    if not name or len(name) > 20 or not all(c.isalnum() or c in "-_" for c in name):
        raise LabError(f"a lab's name is 1 to 20 letters, digits, - or _; got '{name}'")


def start_time(pid):
    """The process's start in clock ticks since boot, or None if there is none."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    is_dead = fields[0] in "ZX" and int(fields[17]) <= 1  # a first thread that has ended, while others still end, is not
    return None if is_dead else fields[19]


def write_process(path, pid):
    write_file(path, f"{pid} {start_time(pid)}\n")


def read_process(path):
    """The pid written to `path` if that very process still lives, else None."""
    try:
        with open(path) as file:
            pid, started = file.read().split()
    except (OSError, ValueError):
        return None
    return int(pid) if start_time(pid) == started else None


def write_file(path, text, mode=0o644):
    partial = f"{path}.partial"
    with open(partial, "w") as file:
        os.fchmod(file.fileno(), mode)
        file.write(text)
    os.rename(partial, path)


def host_directory(name, host):
    return f"{directory(name)}/hosts/{host}"


def host_names(name):
    try:
        return sorted(os.listdir(f"{directory(name)}/hosts"))
    except FileNotFoundError:
        return []


def init_of(name, host):
    """Pid of the host's init; LabError if there is no such host, or it is down."""
    pid = read_process(f"{host_directory(name, host)}/init")
    if pid is not None:
        return pid
    if not os.path.isdir(directory(name)):
        raise LabError(f"lab '{name}' is not up; raise it with: deploy/lab/lab --name {name} up")
    if host not in host_names(name):
        raise LabError(f"no host '{host}' in lab '{name}'; it has: {' '.join(host_names(name))}")
    raise LabError(f"host '{host}' of lab '{name}' is down; see: deploy/lab/lab --name {name} status")
