# SPDX-License-Identifier: Apache-2.0
# Starting, stopping and finding daemons on the lab's hosts.  A daemon is up when it says READY=1 (sd_notify).
import dataclasses
import glob
import itertools
import os
import pwd
import re
import select
import signal
import socket
import sys
import time

import directory
import execute
import kernel
import slurm
import state
from state import LabError

SANITIZER = re.compile(r"(ERROR|WARNING): \w+Sanitizer|: runtime error: ")

@dataclasses.dataclass(frozen=True)
class Daemon:
    name: str
    role: str  # of the hosts it runs on; several with blanks
    program: str
    ports: tuple = ()
    on_demand: bool = False  # started by another daemon
    only_with_inner_relay: bool = False
    # Of a Debian package: how it is started, as whom, and a question whose answer is "up".
    words: tuple = ()
    user: str = "root"
    is_up: object = None
    only_with_slurm: bool = False
    only_with_directory: bool = False


def _file_of(program):
    """As processes are known by: Debian has alternatives of some."""
    return os.path.basename(os.path.realpath(program))


# In the order in which a site starts.
ALL = (
    Daemon("slapd", "directory", _file_of("/usr/sbin/slapd"), (directory.PORT,), words=directory.START,
           is_up=directory.is_up),
    Daemon("munge", "head node", "munged", user="munge", words=("/usr/sbin/munged", "--foreground", "--force"),
           is_up=slurm.is_munge_up, only_with_slurm=True),
    Daemon("slurmctld", "head", _file_of("/usr/sbin/slurmctld"), (slurm.CONTROLLER_PORT,), user="slurm",
           words=("/usr/sbin/slurmctld", "-D"), is_up=slurm.is_controller_up, only_with_slurm=True),
    Daemon("slurmd", "node", _file_of("/usr/sbin/slurmd"), (slurm.NODE_PORT,), words=("/usr/sbin/slurmd", "-D"),
           is_up=slurm.is_node_up, only_with_slurm=True),
    Daemon("allocator", "head", "sekisho-allocator"),
    Daemon("qserver", "head", "sekisho-qserver", (7512, 7513)),
    Daemon("agent", "node", "sekisho-agent"),
    Daemon("nxproxy", "dmz", "sekisho-nxproxy", (7514,)),
    Daemon("nxproxy-inner", "head", "sekisho-nxproxy", only_with_inner_relay=True),
    Daemon("gatekeeper", "dmz", "sekisho-gatekeeper", (2119,)),
    Daemon("directory", "dmz", "sekisho-directory", only_with_directory=True),
    Daemon("jobmanager", "dmz", "sekisho-jobmanager", on_demand=True),
)


def named(name):
    for daemon in ALL:
        if daemon.name == name:
            return daemon
    raise LabError(f"no daemon '{name}'; there are: {' '.join(daemon.name for daemon in ALL)}")


def on(host, world):
    return [daemon for daemon in ALL if _runs_on(daemon, host, world)]


def _runs_on(daemon, host, world):
    site = world.site_of(host)
    if host.role not in daemon.role.split() or (daemon.only_with_slurm and not site.slurm):
        return False
    if daemon.only_with_directory and world.directory is None:
        return False
    return not daemon.only_with_inner_relay or not site.pinholes or site.has_closed_nodes


def log_path(lab, host, daemon_name):
    return f"{state.directory(lab)}/logs/{host}/{daemon_name}.log"


def log_tail(lab, host, daemon_name, lines=15):
    try:
        with open(log_path(lab, host, daemon_name), errors="replace") as file:
            return "".join(file.readlines()[-lines:])
    except FileNotFoundError:
        return ""


def sanitizer_reports(lab):
    """What a sanitizer found in the lab's daemons, one text each: nobody reads the logs of a test that passed."""
    reports = []
    for path in sorted(glob.glob(f"{state.directory(lab)}/logs/*/*.log")):
        with open(path, errors="replace") as file:
            for line in file:
                if SANITIZER.search(line):
                    reports.append(f"{path}: {line.strip()}\n{''.join(itertools.islice(file, 40))}")
    return reports


def processes(lab, host):
    """{program: [pid, ...]} of every process of the host, by its program's file name."""
    init = state.init_of(lab, host)
    namespace = os.readlink(f"/proc/{init}/ns/pid")
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == init:
            continue
        try:
            if os.readlink(f"/proc/{entry}/ns/pid") == namespace:
                program = os.path.basename(os.readlink(f"/proc/{entry}/exe").removesuffix(" (deleted)"))
                found.setdefault(program, []).append(int(entry))
        except OSError:  # it has gone in the meantime
            pass
    return {program: sorted(pids) for program, pids in found.items()}


def pids_of(lab, host, daemon):
    return processes(lab, host).get(daemon.program, [])


def listening_ports(lab, host):
    """TCP ports on which somebody listens on the host."""
    ports = set()
    for family in ("tcp", "tcp6"):
        with open(f"/proc/{state.init_of(lab, host)}/net/{family}") as table:
            for line in table.readlines()[1:]:
                fields = line.split()
                if fields[3] == "0A":
                    ports.add(int(fields[1].rsplit(":", 1)[1], 16))
    return ports


class Start:
    """A daemon on its way up, in a process of its own so that several come up together."""

    def __init__(self, lab, host, daemon, timeout_s):
        self.host, self.daemon, self._lab = host, daemon, lab
        self._began = time.monotonic()
        reading, writing = os.pipe()
        log = os.open(log_path(lab, host, daemon.name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        sys.stdout.flush(), sys.stderr.flush()
        self._helper = os.fork()
        if self._helper == 0:
            os.close(reading)
            try:
                kernel.die_with_parent(signal.SIGKILL)
                groups = execute.enter(lab, host)
                child = os.fork()
                if child == 0:
                    os.write(writing, _start_inside(daemon, groups, log, timeout_s).encode())
                else:
                    os.waitpid(child, 0)
            except (OSError, LabError) as error:
                os.write(writing, f"{error}".encode())
            finally:
                os._exit(0)
        os.close(writing), os.close(log)
        self._answer = reading

    def wait(self):
        """Seconds it took.  LabError with the end of its log if it did not come up."""
        with os.fdopen(self._answer) as answers:
            answer = answers.read()
        os.waitpid(self._helper, 0)
        if answer == "ready":
            return time.monotonic() - self._began
        tail = log_tail(self._lab, self.host, self.daemon.name)
        raise LabError(
            f"{self.daemon.name} on {self.host} {answer or 'was killed while it started'}; its log ends:\n{tail}"
        )


def _start_inside(daemon, groups, log, timeout_s):
    """In the host: starts the daemon as a child of the host's init.  "ready", or what happened instead."""
    kernel.die_with_parent(signal.SIGKILL)
    program = daemon.words[0] if daemon.words else f"/opt/sekisho/bin/{daemon.program}"
    if not os.access(program, os.X_OK):
        return f"is not there: {program} is missing"
    for fd in groups:
        os.write(fd, b"0")
        os.close(fd)
    os.makedirs("/run/lab", exist_ok=True)
    path = f"/run/lab/{daemon.name}.notify"
    if os.path.exists(path):
        os.unlink(path)
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(path)
    child = os.fork()
    if child == 0:
        _become_daemon(daemon, program, path, log)
    deadline = time.monotonic() + timeout_s
    exited = os.pidfd_open(child)
    try:
        while True:
            left = deadline - time.monotonic()
            if daemon.is_up is not None and daemon.is_up():
                return "ready"
            pause = left if daemon.is_up is None else 0.02  # it tells nobody: it is asked
            ready, _, _ = select.select([notify, exited], [], [], max(0, pause))
            if notify in ready and b"READY=1" in notify.recv(4096).split(b"\n"):
                return "ready"
            if exited in ready:
                code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                return f"exited with code {code}" if code >= 0 else f"was killed by signal {-code}"
            if left <= 0:
                os.kill(child, signal.SIGKILL)
                return f"did not say READY=1 within {timeout_s:.0f} s"
    finally:
        os.unlink(path)


def _become_daemon(daemon, program, notify_path, log):
    try:
        os.setsid()
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0), os.dup2(log, 1), os.dup2(log, 2)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.umask(0o022)
        os.chdir("/")
        values = execute.environment(execute.Account("root", 0, 0, "/root", "/bin/sh"))
        del values["X509_USER_PROXY"]
        values["NOTIFY_SOCKET"] = notify_path
        if daemon.words:
            del values["NOTIFY_SOCKET"]
            account = pwd.getpwnam(daemon.user)
            execute.become(execute.Account(account.pw_name, account.pw_uid, account.pw_gid, "/", "/bin/sh"))
            os.execve(program, list(daemon.words), values)
        os.execve(program, [daemon.program, "--config", f"/etc/sekisho/{daemon.name}.json"], values)
    except OSError as error:
        os.write(2, f"{program}: {error}\n".encode())
    os._exit(127)


def start(lab, host, daemon, timeout_s=20):
    if daemon.on_demand:
        raise LabError(f"a {daemon.name} is started on demand; nothing to start")
    if pids_of(lab, host, daemon):
        raise LabError(f"{daemon.name} runs on {host} already")
    return Start(lab, host, daemon, timeout_s).wait()


def stop(lab, host, daemon, number=signal.SIGTERM, timeout_s=10):
    """Signals every such process on the host and waits until they are gone.  Returns how many there were."""
    pids = pids_of(lab, host, daemon)
    for pid in pids:
        _signal(pid, number)
    deadline = time.monotonic() + timeout_s
    while any(state.start_time(pid) is not None for pid in pids):
        if time.monotonic() > deadline:
            for pid in pids:
                _signal(pid, signal.SIGKILL)
            raise LabError(f"{daemon.name} on {host} did not end within {timeout_s} s; it was killed")
        time.sleep(0.005)
    return len(pids)


def _signal(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def start_all(lab, world, tell, timeout_s=18):
    """All daemons of all sites, those of one kind together."""
    deadline = time.monotonic() + timeout_s
    for daemon in ALL:
        if daemon.on_demand:
            continue
        starts = [Start(lab, host.name, daemon, max(1.0, deadline - time.monotonic()))
                  for host in world.hosts if _runs_on(daemon, host, world)]  # fmt: skip
        if not starts:
            continue
        problems = []
        for one in starts:
            try:
                one.wait()
            except LabError as error:
                problems.append(str(error))
        if problems:
            raise LabError("\n".join(problems))
        tell(f"{daemon.name} on {' '.join(one.host for one in starts)}")
