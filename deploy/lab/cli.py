# SPDX-License-Identifier: Apache-2.0
# The lab's command line, apart from the fast path of `exec`.
import argparse
import json
import os
import signal
import subprocess
import sys
import time
import traceback

import daemons
import execute
import hosts
import kernel
import locks
import network
import state
import wan
import world as world_module
from state import LabError

HERE = os.path.dirname(os.path.realpath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))


def main(arguments):
    options = _parse(arguments)
    for number in (signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_DFL:  # not after nohup
            signal.signal(number, _end)
    try:
        state.check_name(options.name)
        if os.geteuid() != 0:
            raise LabError(f"the lab makes namespaces and needs root: sudo {HERE}/lab {' '.join(arguments)}")
        return options.run(options)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141


def _end(number, _):
    """As Ctrl-C does: what was begun is taken back."""
    sys.exit(128 + number)


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="lab",
        description="A small world on one machine: a user outside, sites behind firewalls, real daemons.",
        epilog="docs/operations/lab.md tells more.",
    )
    parser.add_argument("--name", default=os.environ.get("SEKISHO_LAB", "lab"),
                        help="which lab, if several stand side by side (default: $SEKISHO_LAB, else 'lab')")  # fmt: skip
    verbs = parser.add_subparsers(metavar="COMMAND", required=True)

    def verb(name, run, help_text):
        one = verbs.add_parser(name, help=help_text, description=help_text)
        one.set_defaults(run=run)
        return one

    up = verb("up", _up, "raise a lab; returns when all its daemons answer")
    up.add_argument("file", nargs="?", default=f"{HERE}/two-sites.json", metavar="FILE",
                    help="the site file (default: two-sites.json beside this program)")  # fmt: skip
    up.add_argument("--bin", default=os.environ.get("SEKISHO_BIN", f"{SOURCE}/build/release/bin"),
                    metavar="DIR", help="programs (default: $SEKISHO_BIN, else build/release/bin)")  # fmt: skip
    up.add_argument("--state", metavar="DIR",
                    help="keep each host's /var in DIR/HOST; DIR is empty or new, and stays (default: in memory)")  # fmt: skip
    up.add_argument("--no-daemons", action="store_true", help="hosts and network only")
    up.add_argument("--quiet", action="store_true", help="say only what goes wrong")
    verb("down", _down, "take a lab away, whole or in ruins")
    status = verb("status", _status, "every host and daemon; exit code 0 only if all is up")
    status.add_argument("--json", action="store_true", help="for machines")
    execute_parser = verb("exec", _exec, "run a command on a host, as if logged in there")
    execute_parser.add_argument("--user", help="default: alice on client, root elsewhere")
    execute_parser.add_argument("host", metavar="HOST")
    execute_parser.add_argument("command", metavar="CMD", nargs=argparse.REMAINDER)
    for name, run, text in (
        ("start", _start, "start a daemon that is down"),
        ("stop", _stop, "end a daemon (SIGTERM)"),
        ("kill", _kill, "kill -9 every such process on the host"),
        ("logs", _logs, "print what a daemon has logged"),
    ):
        one = verb(name, run, text)
        one.add_argument("host", metavar="HOST")
        one.add_argument("daemon", metavar="DAEMON", help=" ".join(daemon.name for daemon in daemons.ALL))
    firewall = verb("firewall", _firewall, "what a site's firewall has let in and dropped")
    firewall.add_argument("site", metavar="SITE")
    firewall.add_argument("--json", action="store_true", help="for machines")
    return parser.parse_args(arguments)


def _free_slot(name):
    """The lowest number that no other lab has: labs side by side have different uids."""
    taken = set()
    for other in os.listdir(state.BASE):
        try:
            with open(f"{state.directory(other)}/slot") as file:
                taken.add(int(file.read()))
        except (OSError, ValueError):
            pass
    return next(slot for slot in range(1000) if slot not in taken)


def _world(name):
    directory = state.directory(name)
    if not os.path.isdir(directory):
        raise LabError(f"lab '{name}' is not up; raise it with: {HERE}/lab --name {name} up")
    with open(f"{directory}/slot") as file:
        return world_module.load(f"{directory}/site.json", int(file.read()))


def _up(options):
    began = time.monotonic()
    programs = os.path.realpath(options.bin)
    if not options.no_daemons:
        _check_programs(programs)

    def tell(text):
        if not options.quiet:
            print(f"  {time.monotonic() - began:5.1f} s  {text}", flush=True)

    lock = locks.acquire(options.name)
    try:
        _raise(options, programs, lock, tell)
    except BaseException:
        locks.release(options.name, lock)
        raise
    tell(f"lab '{options.name}' is up" + (", without daemons" if options.no_daemons else ""))
    return 0


def _raise(options, programs, lock, tell):
    name = options.name
    if state.read_process(f"{state.directory(name)}/keeper") is not None:
        raise LabError(f"lab '{name}' is up already; take it down with: {HERE}/lab --name {name} down")
    hosts.destroy(name)
    slot = _free_slot(name)
    world = world_module.load(os.path.realpath(options.file), slot)
    os.makedirs(programs, exist_ok=True)
    if options.state:
        world.state = os.path.realpath(options.state)
        if os.path.isdir(world.state) and os.listdir(world.state):
            raise LabError(f"--state {options.state}: expected an empty directory, or a name for a new one")

    report_read, report_write = os.pipe()
    alive_read, alive_write = os.pipe()
    sys.stdout.flush()
    keeper = os.fork()
    if keeper == 0:
        os.close(report_read), os.close(alive_write)
        _be_keeper(name, world, os.path.realpath(options.file), programs, slot, report_write, alive_read, lock)
    os.close(report_write), os.close(alive_read)
    report = os.fdopen(report_read)
    try:
        _follow(report, tell)
        hosts.install_users(name, world)
        if not options.no_daemons:
            daemons.start_all(name, world, tell)
            _make_proxies(name, world)
            tell(f"proxies of {' '.join(world.users)}")
        os.write(alive_write, b"done")
        os.close(alive_write)
    except BaseException:
        os.close(alive_write)  # the keeper takes all of it away again
        report.read()
        os.waitpid(keeper, 0)
        hosts.destroy(name)
        raise
    report.read()


def _be_keeper(name, world, file, programs, slot, report, alive, lock):
    try:
        is_wanted = hosts.keep(name, world, file, programs, SOURCE, slot, report, os.fdopen(alive))
        if is_wanted:
            os.close(lock)
            hosts.wait_for_ever()
        locks.release(name, lock)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _check_programs(programs):
    missing = [daemon.program for daemon in daemons.ALL
               if not daemon.words and not os.access(f"{programs}/{daemon.program}", os.X_OK)]  # fmt: skip
    if missing:
        raise LabError(
            f"{programs} lacks {' '.join(missing)}; build with: cmake --preset release && cmake --build --preset release"
        )


def _follow(report, tell):
    for line in report:
        kind, _, text = line.rstrip("\n").partition(" ")
        if kind == "ready":
            return
        if kind == "error":
            raise LabError(text)
        tell(text)
    raise LabError("the keeper of the lab died")


def _make_proxies(name, world):
    """Everybody's, side by side: each makes a key."""
    running = [(user, subprocess.Popen(
        [f"{HERE}/lab", "--name", name, "exec", "--user", user, "client", "sekisho", "proxy", "init"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
        for user in world.users]  # fmt: skip
    problems = []
    for user, process in running:
        words = process.communicate()[1].strip()
        if process.returncode != 0:
            problems.append(f"sekisho proxy init, as {user}: {words}")
    if problems:
        raise LabError("\n".join(problems))


def _down(options):
    lock = locks.acquire(options.name)
    try:
        reports = daemons.sanitizer_reports(options.name)
        hosts.destroy(options.name)
    finally:
        locks.release(options.name, lock)
    for report in reports:
        print(f"lab: {report}", file=sys.stderr)
    return 1 if reports else 0


def _status(options):
    world = _world(options.name)
    answer = {"name": options.name, "up": True, "hosts": []}
    for host in world.hosts:
        one = {"name": host.name, "site": host.site, "role": host.role, "address": host.address,
               "up": True, "pid": None, "daemons": []}  # fmt: skip
        try:
            one["pid"] = state.init_of(options.name, host.name)
            running = daemons.processes(options.name, host.name)
            ports = daemons.listening_ports(options.name, host.name)
        except (LabError, OSError):
            one["up"], running, ports = False, {}, set()
        for daemon in daemons.on(host, world):
            pids = running.get(daemon.program, [])
            is_up = bool(pids) and ports.issuperset(daemon.ports)
            one["daemons"].append({"name": daemon.name, "up": is_up, "pids": pids, "ports": list(daemon.ports),
                                   "on_demand": daemon.on_demand})  # fmt: skip
            if not is_up and not daemon.on_demand:
                answer["up"] = False
        answer["up"] = answer["up"] and one["up"]
        answer["hosts"].append(one)
    answer["wan"] = wan.status(options.name, world)
    if answer["wan"] is not None and not answer["wan"]["up"]:
        answer["up"] = False
    if options.json:
        print(json.dumps(answer, indent=2))
    else:
        _print_status(answer)
        if world.wan is not None:
            _print_wan(answer["wan"], world.wan)
    return 0 if answer["up"] else 1


def _print_status(answer):
    print(f"{'HOST':10} {'ADDRESS':12} {'DAEMON':12} {'STATE':10} {'PORT':10} PID")
    for host in answer["hosts"]:
        rows = [("", "up" if host["up"] else "DOWN", "", host["pid"] or "")]
        for daemon in host["daemons"]:
            word = "up" if daemon["up"] else "on demand" if daemon["on_demand"] else "DOWN"
            ports = ",".join(str(port) for port in daemon["ports"])
            rows.append((daemon["name"], word, ports, ",".join(str(pid) for pid in daemon["pids"])))
        if len(rows) > 1 and host["up"]:
            del rows[0]
        for name, word, ports, pids in rows:
            print(f"{host['name']:10} {host['address']:12} {name:12} {word:10} {ports:10} {pids}")


def _print_wan(answer, setting):
    print(f"\nwan emulator {'up' if answer['up'] else 'DOWN'}  {answer['pid'] or ''}")
    if not answer["up"]:
        return
    print(f"{'FROM':10} {'TO':10} {'PACKETS':>10} {'BYTES':>13} {'LOST':>7} {'QUEUE FULL':>10}  SETTING")
    for link in answer["counters"]["links"]:
        pair = next(pair for pair in setting.links if set(pair) == {link["from"], link["to"]})
        print(f"{link['from']:10} {link['to']:10} {link['packets']:10} {link['bytes']:13} {link['lost']:7} "
              f"{link['overflowed']:10}  {setting.links[pair]}")  # fmt: skip


def _exec(options):
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise LabError("exec needs a command")
    return execute.run(options.name, options.user, options.host, command)


def _start(options):
    seconds = daemons.start(options.name, options.host, _daemon_of(options))
    print(f"{options.daemon} on {options.host} is up after {seconds:.2f} s")
    return 0


def _stop(options):
    daemons.stop(options.name, options.host, _daemon_of(options))
    return 0


def _kill(options):
    daemons.stop(options.name, options.host, _daemon_of(options), signal.SIGKILL)
    return 0


def _daemon_of(options):
    daemon = daemons.named(options.daemon)
    state.init_of(options.name, options.host)
    world = _world(options.name)
    host = world.host(options.host)
    if daemon not in daemons.on(host, world):
        known = " ".join(one.name for one in daemons.on(host, world)) or "none"
        raise LabError(f"{options.host} has no {daemon.name}; its daemons: {known}")
    return daemon


def _logs(options):
    path = daemons.log_path(options.name, options.host, _daemon_of(options).name)
    try:
        with open(path, "rb") as file:
            sys.stdout.flush()
            while chunk := file.read(1 << 16):
                sys.stdout.buffer.write(chunk)
    except FileNotFoundError:
        raise LabError(f"{options.daemon} was never started on {options.host}") from None
    return 0


def _firewall(options):
    world = _world(options.name)
    if options.site not in world.sites:
        raise LabError(f"no site '{options.site}'; there are: {' '.join(world.sites)}")
    router = f"{world.sites[options.site].prefix}-router"
    fd = os.open(f"/proc/{state.init_of(options.name, router)}/ns/net", os.O_RDONLY)
    kernel.setns(fd, kernel.NEWNET)
    counters = network.read_counters()
    if options.json:
        print(json.dumps(counters))
    else:
        print(f"{'':18} {'connections':>12} {'packets':>12}")
        for name, count in counters.items():
            print(f"{name:18} {count['connections']:12} {count['packets']:12}")
    return 0
