# SPDX-License-Identifier: Apache-2.0
# A site's Slurm: what its hosts need in /etc and /var, how its daemons are started, and when they are up.
# Without control groups and without accounting: docs/operations/slurm.md says what a real site has besides.
import os
import shutil
import socket
import subprocess

from state import write_file

CONTROLLER_PORT = 6817
NODE_PORT = 6818
_MUNGE_SOCKET = "/run/munge/munge.socket.2"

_CONFIGURATION = """\
ClusterName={site}
SlurmctldHost={head}
SlurmUser=slurm
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=5
KillWait=5
NodeName={nodes} CPUs=2
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=short Nodes=ALL MaxTime=5 State=UP
"""


def write(site, root, host, secret):
    """Below the directory `root`, the files of one host.  All hosts of a site share the secret."""
    names = ",".join(other.name for other in site.hosts if other.role == "node")
    os.makedirs(f"{root}/etc/slurm")
    text = _CONFIGURATION.format(site=site.name.lower(), head=f"{site.prefix}-head", nodes=names)
    write_file(f"{root}/etc/slurm/slurm.conf", text)
    write_file(f"{root}/etc/slurm/cgroup.conf", "CgroupPlugin=cgroup/v1\n")  # named, so that it looks for none
    for path, owner, mode in (
        ("etc/munge", "munge", 0o700),
        ("var/lib/munge", "munge", 0o711),
        ("var/log/munge", "munge", 0o700),
        ("run/munge", "munge", 0o755),
        ("var/spool/slurmctld", "slurm", 0o755),
        ("var/spool/slurmd", "root", 0o755),
    ):
        os.makedirs(f"{root}/{path}")
        os.chmod(f"{root}/{path}", mode)
        shutil.chown(f"{root}/{path}", owner, owner)
    with open(f"{root}/etc/munge/munge.key", "wb") as file:
        os.fchmod(file.fileno(), 0o400)
        file.write(secret)
    shutil.chown(f"{root}/etc/munge/munge.key", "munge", "munge")


def is_munge_up():
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(_MUNGE_SOCKET) == 0


def is_controller_up():
    return _says("scontrol", "ping")


def is_node_up():
    """The controller may not know of it yet: jobs wait the moment."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", NODE_PORT)) == 0


def _says(*words):
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
