# SPDX-License-Identifier: Apache-2.0
# A subtree of control groups per lab and host, in every hierarchy the machine has: version 2 alone, version 1
# with an empty version 2 beside it, or none at all.  A host's daemons live in HOST/system, so that HOST itself
# stays free of processes and may hand its controllers on.
# Imported on the fast path of `lab exec`: nothing slow in here.
import os
import time

ROOT = "/sys/fs/cgroup"
V1_USED = ("freezer", "pids", "memory")
_CONTROLLERS = ("cpu", "memory", "pids")


def hierarchies():
    """[(type, mount point, options)], version 2 first."""
    found = []
    with open("/proc/self/mounts") as mounts:
        for line in mounts:
            _, target, kind, options = line.split()[:4]
            if kind == "cgroup2" and target in (ROOT, f"{ROOT}/unified"):
                found.insert(0, (kind, target, None))
            elif kind == "cgroup":
                names = [name for name in V1_USED if name in options.split(",")]
                if names and target.startswith(ROOT + "/") and not os.path.islink(target):
                    found.append((kind, target, names[0]))
    return [one for one in found if os.access(one[1], os.W_OK)]


def _lab(name):
    return f"sekisho-lab-{name}"


def make(name, hosts):
    """Makes the lab's subtree; hierarchies that refuse are left out."""
    for kind, target, _ in hierarchies():
        top = f"{target}/{_lab(name)}"
        try:
            os.makedirs(f"{top}/keeper", exist_ok=True)
            if kind == "cgroup2":
                _enable_controllers(target)
                _enable_controllers(top)
            for host in hosts:
                os.makedirs(f"{top}/{host}/system", exist_ok=True)
        except OSError:
            remove_tree(top)


def _enable_controllers(path):
    with open(f"{path}/cgroup.controllers") as file:
        available = file.read().split()
    for controller in _CONTROLLERS:
        if controller in available:
            try:
                with open(f"{path}/cgroup.subtree_control", "w") as file:
                    file.write(f"+{controller}")
            except OSError:
                pass


def join(name, group):
    """Moves the calling process into the lab's `group`, e.g. "a-n1/system"."""
    for fd in open_groups(name, group):
        os.write(fd, b"0")
        os.close(fd)


def open_groups(name, group):
    """Descriptors to which a process writes 0 to join `group`, also from another mount namespace."""
    descriptors = []
    for target in (ROOT, f"{ROOT}/unified", *(f"{ROOT}/{v1}" for v1 in V1_USED)):
        try:
            descriptors.append(os.open(f"{target}/{_lab(name)}/{group}/cgroup.procs", os.O_WRONLY))
        except OSError:
            pass
    return descriptors


def kill(name):
    """Kills whatever still runs in the lab's version 2 subtree."""
    for target in (ROOT, f"{ROOT}/unified"):
        try:
            with open(f"{target}/{_lab(name)}/cgroup.kill", "w") as file:
                file.write("1")
        except OSError:
            pass


def remove(name):
    for target in (ROOT, f"{ROOT}/unified", *(f"{ROOT}/{v1}" for v1 in V1_USED)):
        remove_tree(f"{target}/{_lab(name)}")


def remove_tree(top, patience_s=2.0):
    """Control groups are removed leaf first; one whose last process has just died is busy for a moment."""
    deadline = time.monotonic() + patience_s
    for path, _, _ in os.walk(top, topdown=False):
        while True:
            try:
                os.rmdir(path)
                break
            except FileNotFoundError:
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
