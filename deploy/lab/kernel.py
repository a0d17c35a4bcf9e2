# SPDX-License-Identifier: Apache-2.0
# The system calls that Python 3.11 has no name for: namespaces, mounts, prctl.
# Imported on the fast path of `lab exec`: nothing slow in here.
import ctypes
import os

NEWNS = 0x00020000
NEWCGROUP = 0x02000000
NEWUTS = 0x04000000
NEWIPC = 0x08000000
NEWPID = 0x20000000
NEWNET = 0x40000000
ALL_OF_A_HOST = NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWPID | NEWNET

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18

_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_SYS_MOUNT_SETATTR = 442  # the same number on every architecture
_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result, what):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def unshare(flags):
    _check(_libc.unshare(flags), "unshare")


def setns(fd, flags):
    _check(_libc.setns(fd, flags), "setns")


def mount(source, target, kind=None, flags=0, data=None):
    encode = lambda text: None if text is None else os.fsencode(text)
    _check(
        _libc.mount(encode(source), encode(target), encode(kind), ctypes.c_ulong(flags), encode(data)),
        f"mount {source} on {target}",
    )


def bind(source, target):
    mount(source, target, None, MS_BIND)


def set_read_only(path, read_only):
    """Changes one mount (and those below it) without a remount of each."""
    attributes = (ctypes.c_uint64 * 4)(1 if read_only else 0, 0 if read_only else 1, 0, 0)
    _check(
        _libc.syscall(
            _SYS_MOUNT_SETATTR,
            _AT_FDCWD,
            os.fsencode(path),
            _AT_RECURSIVE,
            ctypes.byref(attributes),
            ctypes.sizeof(attributes),
        ),
        f"mount_setattr {path}",
    )


def sethostname(name):
    data = name.encode()
    _check(_libc.sethostname(data, len(data)), "sethostname")


def die_with_parent(signal_number):
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0), "prctl")


def set_process_name(name):
    _libc.prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)
