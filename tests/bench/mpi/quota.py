# SPDX-License-Identifier: Apache-2.0
# Node speeds: a host of a lab gets a share of one processor, by the kernel's CPU quota (control groups 1 or 2).
import os

PERIOD_US = 20_000
ALL = None           # a share: as much as it can get
FIRST_V1 = 262_144   # weights: before whatever else the machine does
FIRST_V2 = 10_000
_TOPS = ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct")


def _processes(lab, host):
    """Of the host, by the groups that the lab has put them in."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cgroup") as file:
                if f"/sekisho-lab-{lab}/{host}/" in file.read():
                    found.append(pid)
        except OSError:  # it has just ended
            pass
    return found


def _write(path, text):
    with open(path, "w") as file:
        file.write(text)


class Quota:
    """From `with` on all that the host runs, and will run, has `share` of a processor together, also if the machine is busy."""

    def __init__(self, lab, host, share):
        quota = None if share is ALL else round(share * PERIOD_US)
        self.made = None
        two = f"/sys/fs/cgroup/sekisho-lab-{lab}/{host}"
        if os.path.exists(f"{two}/cpu.max"):
            _write(f"{two}/cpu.max", f"{quota or 'max'} {PERIOD_US}")
            for group in (two, os.path.dirname(two)):
                _write(f"{group}/cpu.weight", str(FIRST_V2))
            return
        top = next((top for top in _TOPS if os.path.exists(f"{top}/cpu.cfs_quota_us")), None)
        if top is None:
            raise RuntimeError("the kernel here has no CPU quota: neither cpu.max nor cpu.cfs_quota_us")
        self.made = f"{top}/sekisho-bench-{lab}-{host}"
        os.mkdir(self.made)
        _write(f"{self.made}/cpu.cfs_period_us", str(PERIOD_US))
        _write(f"{self.made}/cpu.cfs_quota_us", str(quota or -1))
        _write(f"{self.made}/cpu.shares", str(FIRST_V1))
        for pid in _processes(lab, host):
            _write(f"{self.made}/cgroup.procs", pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Once the host has gone: its processes are moved out first if it has not."""
        if self.made:
            with open(f"{self.made}/cgroup.procs") as file:
                for pid in file.read().split():
                    try:
                        _write(f"{os.path.dirname(self.made)}/cgroup.procs", pid)
                    except OSError:
                        pass
            os.rmdir(self.made)
