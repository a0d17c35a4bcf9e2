# SPDX-License-Identifier: Apache-2.0
# One `up` or `down` at a time for each lab; the file goes away with the lab.
import fcntl
import os
import sys

import state


def _path(name):
    return f"{state.BASE}/.{name}.lock"


def acquire(name):
    """A descriptor; processes that inherit it hold the lock too, until the last has closed it."""
    while True:
        os.makedirs(state.BASE, mode=0o700, exist_ok=True)
        try:
            fd = os.open(_path(name), os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:  # a `down` has just removed the directory
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"lab: waiting for another `up` or `down` of lab '{name}'", file=sys.stderr)
            fcntl.flock(fd, fcntl.LOCK_EX)
        if _is_current(name, fd):
            return fd
        os.close(fd)


def release(name, fd):
    """Leaves nothing behind where there is no lab."""
    if _is_current(name, fd) and not os.path.isdir(state.directory(name)):
        os.unlink(_path(name))
        try:
            os.rmdir(state.BASE)
        except OSError:  # another lab's
            pass
    os.close(fd)


def _is_current(name, fd):
    try:
        return os.stat(_path(name)).st_ino == os.fstat(fd).st_ino
    except FileNotFoundError:
        return False
