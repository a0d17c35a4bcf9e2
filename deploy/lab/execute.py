# SPDX-License-Identifier: Apache-2.0
# `lab exec`: enters a host and runs a command there.  No shell, no service in between: a few system calls,
# so that what one measures is the command.
import os
import signal
import sys

import cgroups
import kernel
import state

PATH = "/opt/sekisho/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_FORWARDED = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGCONT, signal.SIGWINCH,
)  # fmt: skip
_SI_KERNEL = 0x80
_KEPT = ("TERM", "LANG", "COLUMNS", "LINES", "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")


class Account:
    def __init__(self, name, uid, gid, home, shell):
        self.name, self.uid, self.gid, self.home, self.shell = name, int(uid), int(gid), home, shell


def account_of(lab, host, user):
    with open(f"{state.host_directory(lab, host)}/root/etc/passwd") as passwd:
        for line in passwd:
            fields = line.rstrip("\n").split(":")
            if fields[0] == user:
                return Account(user, fields[2], fields[3], fields[5], fields[6])
    raise state.LabError(f"no account '{user}' on host '{host}'")


def environment(account):
    values = {key: os.environ[key] for key in _KEPT if key in os.environ}
    values.update(
        PATH=PATH, HOME=account.home, USER=account.name, LOGNAME=account.name, SHELL=account.shell,
        X509_USER_PROXY=f"/tmp/x509up_u{account.uid}",
    )  # fmt: skip
    return values


def enter(lab, host):
    """Puts this process's next child into the host.  Returns descriptors of the host's control groups."""
    fd = os.pidfd_open(state.init_of(lab, host))
    groups = cgroups.open_groups(lab, f"{host}/system")
    kernel.setns(fd, kernel.ALL_OF_A_HOST)
    os.close(fd)
    return groups


def become(account):
    os.setgroups([account.gid] if account.uid else [0])
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)


def run(lab, user, host, command):
    """Runs `command` on `host`; returns its exit code, 128+n if signal n ended it."""
    state.init_of(lab, host)
    account = account_of(lab, host, user or ("alice" if host == "client" else "root"))
    variables = environment(account)
    groups = enter(lab, host)

    # The command gets the terminal's foreground, as from a shell; signals sent to us are passed on.
    has_terminal = os.isatty(0) and _foreground() == os.getpgrp()
    watched = {*_FORWARDED, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    child = os.fork()
    if child == 0:
        _become_command(account, variables, groups, command, has_terminal, watched)
    if has_terminal:
        _take_foreground(child, child)
    try:
        return _wait(child, watched)
    finally:
        if has_terminal:
            _take_foreground(None, os.getpgrp())


def _foreground():
    try:
        return os.tcgetpgrp(0)
    except OSError:
        return -1


def _take_foreground(child, group):
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        if child is not None:
            os.setpgid(child, child)
        os.tcsetpgrp(0, group)
    except OSError:
        pass
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)


def _become_command(account, variables, groups, command, has_terminal, watched):
    try:
        for fd in groups:
            os.write(fd, b"0")
            os.close(fd)
        if has_terminal:
            _take_foreground(0, os.getpid())
        become(account)
        kernel.die_with_parent(signal.SIGKILL)
        os.umask(0o022)
        try:
            os.chdir(account.home)
        except OSError:
            os.chdir("/")
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, watched)
        os.environ["PATH"] = PATH
        os.execvpe(command[0], command, variables)
    except FileNotFoundError:
        print(f"lab: {command[0]}: no such command on this host", file=sys.stderr)
        os._exit(127)
    except OSError as error:
        print(f"lab: {command[0]}: {error.strerror}", file=sys.stderr)
        os._exit(126)


def _wait(child, watched):
    while True:
        info = signal.sigwaitinfo(watched)
        if info.si_signo == signal.SIGCHLD:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
        elif info.si_code != _SI_KERNEL:  # the terminal's own have reached the command already
            try:
                os.kill(child, info.si_signo)
            except ProcessLookupError:
                pass
