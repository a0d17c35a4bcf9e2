# SPDX-License-Identifier: Apache-2.0
# The peer: Slurm on one machine, in namespaces of its own.  As a program it is the first process of these
# namespaces: it starts munge, slurmctld and slurmd, then drives them as an unprivileged user.  All of it, and
# every file it wrote, ends with this process.
import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time

import drive

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "squeue", "scancel", "sinfo")
DAEMONS = ("munged", "slurmctld", "slurmd")
ADDRESS = "10.77.0.1"
BASE = "/run/slurm-bench"
CONF = f"""
ClusterName=bench
SlurmctldHost=head({ADDRESS})
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=slurm
AuthType=auth/munge
AuthInfo=socket={BASE}/munge/socket
CredType=cred/munge
StateSaveLocation={BASE}/state
SlurmdSpoolDir={BASE}/spool
SlurmctldPidFile={BASE}/state/slurmctld.pid
SlurmdPidFile={BASE}/spool/slurmd.pid
SlurmctldLogFile={BASE}/state/slurmctld.log
SlurmdLogFile={BASE}/spool/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MaxJobCount=250000
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=5
NodeName=head NodeAddr={ADDRESS} CPUs=%d
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def is_installed():
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    return all(shutil.which(program) for program in PROGRAMS)


class Slurm(drive.Driver):
    """A Driver inside the peer's namespaces, and what only root can do there."""

    def kill_controller(self):
        self._inside("pkill", "-KILL", "slurmctld")

    def start_controller(self):
        """Returns at once."""
        self._inside("setsid", "setpriv", "--reuid=slurm", "--regid=slurm", "--clear-groups", "slurmctld")

    def controller_kib(self):
        return sum(found[1] for found in self.ask("processes_named", names=["slurmctld"]).values())

    def until_stored(self):
        """The controller writes down what it knows some seconds later: killed before, it has forgotten that."""
        before = time.time()
        answer = self.ask("latency", command=["sbatch", "--hold", "--job-name=last", "--wrap=true"], times=1)
        deadline = time.monotonic() + 60
        while answer["failed"] or os.stat(f"/proc/{self._keeper()}/root{BASE}/state/job_state").st_mtime <= before:
            if answer["failed"] or time.monotonic() > deadline:
                raise RuntimeError("Slurm does not store its jobs: " + answer["error"])
            time.sleep(0.1)
        self.ask("latency", command=["scancel", "--name=last"], times=1)

    def _keeper(self):
        """The first process of the namespaces."""
        with open(f"/proc/{self._process.pid}/task/{self._process.pid}/children") as children:
            return children.read().split()[0]

    def _inside(self, *words):
        enter = ["nsenter", "--target", self._keeper(), "--mount", "--net", "--pid", "--ipc", "--uts"]
        subprocess.run([*enter, "env", f"SLURM_CONF={BASE}/slurm.conf", *words], check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip


def start(processors, state=None):
    """A fresh Slurm, with its files in the new folder `state`, or in memory; RuntimeError with the daemons' last words if it
    does not come up."""
    driver = Slurm(
        ["unshare", "--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child",
         "--propagation", "private", "/usr/bin/python3", "-B", os.path.realpath(__file__), str(processors),
         *([state] if state else [])])  # fmt: skip
    report = driver.answer()
    if report["error"]:
        driver.close()
        raise RuntimeError(report["error"])
    return driver


def _prepare(processors, state=None):
    """A host named head with private /proc, /run, /tmp and network, and Slurm's files in /run, maybe bound from `state`."""
    for words in (
        ["mount", "-t", "proc", "proc", "/proc"],
        ["mount", "-t", "tmpfs", "tmpfs", "/run"],
        ["mkdir", BASE],
        *([["mkdir", state], ["mount", "--bind", state, BASE]] if state else []),
        ["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/tmp"],
        ["ip", "link", "set", "lo", "up"],
        ["ip", "address", "add", f"{ADDRESS}/32", "dev", "lo"],
    ):
        subprocess.run(words, check=True)
    socket.sethostname("head")
    for name, owner, mode in (("munge", "munge", 0o755), ("state", "slurm", 0o755),
                              ("spool", "root", 0o755)):  # fmt: skip
        path = f"{BASE}/{name}"
        os.mkdir(path, mode)
        shutil.chown(path, owner)
    _write(f"{BASE}/hosts", f"127.0.0.1 localhost\n{ADDRESS} head\n")
    subprocess.run(["mount", "--bind", f"{BASE}/hosts", "/etc/hosts"], check=True)
    _write(f"{BASE}/slurm.conf", CONF % processors)
    _write(f"{BASE}/munge/key", os.urandom(128), 0o400)
    shutil.chown(f"{BASE}/munge/key", "munge")
    os.environ["SLURM_CONF"] = f"{BASE}/slurm.conf"


def _write(path, content, mode=0o644):
    content = content.encode() if isinstance(content, str) else content
    with open(path, "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(content)


def _start_daemons():
    munge = f"{BASE}/munge"
    _daemon("munge", ["munged", "--foreground", f"--socket={munge}/socket", f"--key-file={munge}/key",
                      f"--log-file={munge}/log", f"--pid-file={munge}/pid", f"--seed-file={munge}/seed"])  # fmt: skip
    _until(lambda: os.path.exists(f"{munge}/socket"), f"{munge}/log")
    _daemon("slurm", ["slurmctld", "-D"])
    _daemon("root", ["slurmd", "-D", "-N", "head"])
    _until(lambda: drive.timed(["sinfo", "-h", "-o", "%T"])[2].strip() == "idle", f"{BASE}/state/slurmctld.log")


def _daemon(user, words):
    with open(f"{BASE}/{words[0]}.out", "wb") as out:
        subprocess.Popen(words, user=user, group=user, extra_groups=[], stdin=subprocess.DEVNULL, stdout=out, stderr=out)


def _until(is_up, log):
    deadline = time.monotonic() + 30
    while not is_up():
        if time.monotonic() > deadline:
            with open(log, errors="replace") as file:
                raise RuntimeError("Slurm is not up within 30 s: " + file.read()[-1000:])
        time.sleep(0.05)


def _serve_as(user):
    """Forked, not executed: the unprivileged user may not be able to read this source tree."""
    account = pwd.getpwnam(user)
    os.setgroups([])
    os.setresgid(*[account.pw_gid] * 3)
    os.setresuid(*[account.pw_uid] * 3)
    os.chdir("/tmp")
    drive.serve()
    sys.stdout.flush()
    os._exit(0)


def main():
    error = ""
    try:
        os.environ["PATH"] = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
        _prepare(int(sys.argv[1]), *sys.argv[2:])
        _start_daemons()
    except (RuntimeError, OSError, LookupError, subprocess.CalledProcessError) as problem:
        error = str(problem)
    print(json.dumps({"error": error}), flush=True)
    if error:
        return 1
    driver = os.fork()
    if driver == 0:
        _serve_as("nobody")
    while True:  # the first process of a namespace collects its orphans
        pid, status = os.wait()
        if pid == driver:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
