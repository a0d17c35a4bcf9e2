# SPDX-License-Identifier: Apache-2.0
# A lab's processes: one keeper, and one init per host.  The keeper's namespaces are the world between the hosts;
# when it dies, the inits die, and with each of them all processes, mounts and links of its host.
import os
import shutil
import signal
import subprocess
import time
import traceback

import certificates
import cgroups
import filesystem
import kernel
import network
import skeleton
import state
import wan


def keep(name, world, site_file, programs, source, slot, report, alive):
    """The keeper's life, in a fresh process.  Tells `report` what it does; builds the lab, then waits for "done"
    on `alive`: if whoever raises the lab goes away first, all is taken down again.  True if the lab stands."""
    os.setsid()
    kernel.set_process_name(f"lab-{name}")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)
    is_wanted = False
    try:
        _build(name, world, site_file, programs, source, slot, report)
        _say(report, "ready")
        is_wanted = alive.read() == "done"
    except BrokenPipeError:  # nobody waits for this lab any more
        pass
    except Exception as error:  # whatever it is, nothing half-made stays
        _say(report, f"error {' '.join(str(error).split()) or type(error).__name__}")
    if not is_wanted:
        destroy(name, keeper_is_us=True)
    os.close(report)
    return is_wanted


def _say(report, text):
    os.write(report, f"{text}\n".encode())


def wait_for_ever():
    """Reaps inits; a host whose init is gone is down, the others go on."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            signal.pause()


def _build(name, world, site_file, programs, source, slot, report):
    directory = state.directory(name)
    os.makedirs(f"{directory}/hosts", mode=0o700)
    state.write_process(f"{directory}/keeper", os.getpid())
    log = os.open(f"{directory}/keeper.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0), os.dup2(log, 1), os.dup2(log, 2)  # nobody must wait for us at a pipe
    os.chdir("/")
    state.write_file(f"{directory}/slot", f"{slot}\n")
    state.write_file(f"{directory}/programs", f"{programs}\n")
    shutil.copyfile(site_file, f"{directory}/site.json")

    def tell(text):
        _say(report, f"step {text}")

    tell("certificates")
    authority = certificates.Authority(f"{directory}/authority")
    authority.create(world)
    for host in world.hosts:
        os.makedirs(f"{directory}/hosts/{host.name}")
        os.makedirs(f"{directory}/logs/{host.name}")
        if world.state:
            os.makedirs(f"{world.state}/{host.name}")
            os.chmod(f"{world.state}/{host.name}", 0o755)
        skeleton.write(world, f"{directory}/hosts/{host.name}/root", host, authority)

    tell(f"{len(world.hosts)} hosts")
    cgroups.make(name, [host.name for host in world.hosts])
    cgroups.join(name, "keeper")
    kernel.unshare(kernel.NEWNS | kernel.NEWNET | kernel.NEWUTS | kernel.NEWIPC)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.sethostname("internet")
    os.mkdir(f"{directory}/home")
    kernel.mount("lab", f"{directory}/home", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755")
    for site in world.sites.values():
        os.mkdir(f"{directory}/home/{site.name}")
        skeleton.make_homes(world, site.hosts[0], f"{directory}/home/{site.name}")

    own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY)
    inits = {}
    for host in world.hosts:
        kernel.unshare(kernel.NEWPID)
        inits[host.name] = _Init(name, world, host, programs, source, authority)
        kernel.setns(own_pids, kernel.NEWPID)
        state.write_process(f"{directory}/hosts/{host.name}/init", inits[host.name].pid)
    os.close(own_pids)
    for init in inits.values():
        init.expect("namespaces")

    tell("network and firewalls")
    network.connect(world, {name: init.pid for name, init in inits.items()})
    # A router first: the others' links end in bridges that it makes.
    for is_router in (True, False):
        chosen = [inits[host.name] for host in world.hosts if (host.role == "router") == is_router]
        for init in chosen:
            init.go()
        for init in chosen:
            init.expect("ready")
    if world.wan is not None:
        tell(f"wan: {world.wan}")
        wan.start(name, world, programs)
        network.connect_wan(world)


class _Init:
    """A host's first process, and the pipes over which it says how far it is."""

    def __init__(self, name, world, host, programs, source, authority):
        self._host = host.name
        answers_read, answers_write = os.pipe()
        orders_read, self._orders = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _close_all_but(answers_write, orders_read)  # else a host would hold the pipes of the keeper
            _init_main(name, world, host, programs, source, authority, answers_write, orders_read)
        os.close(answers_write), os.close(orders_read)
        self._answers = os.fdopen(answers_read)

    def expect(self, word):
        answer = self._answers.readline().strip()
        if answer != word:
            raise state.LabError(f"host {self._host}: {answer or 'its init died; see the log of the keeper'}")

    def go(self):
        os.write(self._orders, b"g")
        os.close(self._orders)


def _close_all_but(*kept):
    lowest = 3
    for fd in sorted(kept):
        os.closerange(lowest, fd)
        lowest = fd + 1
    os.closerange(lowest, 1 << 16)


def _init_main(name, world, host, programs, source, authority, answers, orders):
    try:
        kernel.die_with_parent(signal.SIGKILL)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        kernel.set_process_name(f"lab-{host.name}")
        cgroups.join(name, host.name)
        kernel.unshare(kernel.NEWNS | kernel.NEWNET | kernel.NEWUTS | kernel.NEWIPC | kernel.NEWCGROUP)
        cgroups.join(name, f"{host.name}/system")
        kernel.sethostname(host.name)
        os.write(answers, b"namespaces\n")
        directory = state.directory(name)
        shared = f"{directory}/home/{host.site}" if host.role in ("head", "node") else None
        os.umask(0o022)
        var = f"{world.state}/{host.name}" if world.state else None
        filesystem.build(f"{directory}/hosts/{host.name}/root", shared, programs, source, var)
        if shared is None:
            skeleton.make_homes(world, host, "/home")
        os.chdir("/")
        if os.read(orders, 1) != b"g":
            os._exit(1)
        network.configure(world, host)
        os.write(answers, b"ready\n")
        os.close(answers), os.close(orders)
        _reap()
    except BaseException as error:  # whatever it is: a host without its init is no host
        traceback.print_exc()
        os.write(answers, f"{type(error).__name__}: {' '.join(str(error).split())}\n".encode())
    os._exit(1)


def _reap():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        except ChildProcessError:
            pass
        signal.sigwait({signal.SIGCHLD})


def install_users(name, world):
    """In the client: everybody's certificate and key."""
    authority = certificates.Authority(f"{state.directory(name)}/authority")
    # The copies are made where the authority can be read, then carried in through the init's root.
    root = f"/proc/{state.init_of(name, 'client')}/root"
    for user in world.users.values():
        authority.install_user(user, f"{root}/home/{user.name}")


def destroy(name, keeper_is_us=False):
    """Takes all of a lab away, however much of it there is.  Idempotent."""
    directory = state.directory(name)
    victims = [f"{state.host_directory(name, host)}/init" for host in state.host_names(name)]
    if not keeper_is_us:
        victims.insert(0, f"{directory}/keeper")
    victims.append(f"{directory}/wan")
    for path in victims:
        pid = state.read_process(path)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
    if not keeper_is_us:
        cgroups.kill(name)
    deadline = time.monotonic() + 10
    for path in victims:
        while state.read_process(path) is not None:
            if keeper_is_us:
                os.waitpid(-1, os.WNOHANG)
            if time.monotonic() > deadline:
                raise state.LabError(f"a process of lab '{name}' does not die; see {path}")
            time.sleep(0.005)
    if keeper_is_us:  # its own mount hides the directory, and it cannot remove the group it is in
        os.chdir("/")
        subprocess.run(["umount", "-l", f"{directory}/home"], stderr=subprocess.DEVNULL, check=False)
        _leave_groups()
    cgroups.remove(name)
    shutil.rmtree(directory, ignore_errors=False) if os.path.isdir(directory) else None


def _leave_groups():
    for _, target, _ in cgroups.hierarchies():
        try:
            with open(f"{target}/cgroup.procs", "w") as file:
                file.write("0")
        except OSError:
            pass

