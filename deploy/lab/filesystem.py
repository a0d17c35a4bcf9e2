# SPDX-License-Identifier: Apache-2.0
# What a host sees as its files: the machine's, read-only, under private /tmp /dev/shm /var /run /root /home /etc,
# in memory (/var maybe on a disk); /home shared among a site's head and nodes.
import os
import shutil

import cgroups
import kernel

# What the machine gives by symbolic link stays as it is; these are the lab's own.
_OWN_ETC = (
    "passwd", "group", "shadow", "gshadow", "hosts", "hostname", "nsswitch.conf", "resolv.conf",
    "sekisho", "grid-security", "mtab",
)  # fmt: skip


def build(skeleton, home, programs, source, var=None):
    """In a host's fresh mount namespace: everything.  `skeleton` is copied over the result, with its owners;
    `home` is a shared directory or None; `programs` and `source` appear in /opt/sekisho; `var` is an empty directory
    to be the host's /var, or None: in memory."""
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    hierarchies = cgroups.hierarchies()
    kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)

    # Descriptors into what is about to be hidden.
    kept = {
        "/opt/sekisho/bin": programs,
        "/opt/sekisho/libexec/sekisho": programs,
        "/opt/sekisho/source": source,
        "/etc/.machine": "/etc",
        **{f"/opt/{name}": f"/opt/{name}" for name in os.listdir("/opt") if name != "sekisho"},
    }
    kept = {target: os.open(path, os.O_PATH) for target, path in kept.items() if os.path.isdir(path)}
    skeleton_fd = os.open(skeleton, os.O_RDONLY)
    shared = {"/home": home, "/var": var}
    shared = {target: os.open(path, os.O_PATH) for target, path in shared.items() if path is not None}
    machine_etc = os.listdir("/etc")

    kernel.set_read_only("/", True)
    kernel.set_read_only("/proc", False)
    kernel.mount("sysfs", "/sys", "sysfs", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    _mount_cgroups(hierarchies)
    for path, mode in (
        ("/tmp", "1777"), ("/dev/shm", "1777"), ("/var", "755"), ("/run", "755"), ("/root", "700"),
        ("/home", "755"), ("/opt", "755"), ("/etc", "755"),
    ):  # fmt: skip
        kernel.mount("lab", path, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, f"mode={mode}")
    for target, fd in shared.items():
        kernel.bind(f"/proc/self/fd/{fd}", target)
        kernel.set_read_only(target, False)
        os.close(fd)
    for target, fd in kept.items():
        os.makedirs(target)
        kernel.bind(f"/proc/self/fd/{fd}", target)
        os.close(fd)

    for name in machine_etc:
        if name not in _OWN_ETC and not os.path.exists(f"/proc/self/fd/{skeleton_fd}/etc/{name}"):
            os.symlink(f".machine/{name}", f"/etc/{name}")
    os.symlink("/proc/self/mounts", "/etc/mtab")
    os.symlink("/run", "/var/run")
    os.symlink("/run/lock", "/var/lock")
    for name, mode in (("cache", 0o755), ("lib", 0o755), ("log", 0o755), ("mail", 0o755),
                       ("spool", 0o755), ("tmp", 0o1777)):  # fmt: skip
        os.mkdir(f"/var/{name}")
        os.chmod(f"/var/{name}", mode)
    os.mkdir("/run/lock", 0o755)
    _copy_owned(f"/proc/self/fd/{skeleton_fd}", "/")
    os.close(skeleton_fd)


def _mount_cgroups(hierarchies):
    """The host's own subtree, seen as the root of the same layout that the machine has."""
    if not hierarchies:
        return
    if hierarchies[0][1] != cgroups.ROOT:
        kernel.mount("lab", cgroups.ROOT, "tmpfs", 0, "mode=755")
    for kind, target, options in hierarchies:
        os.makedirs(target, exist_ok=True)
        kernel.mount("lab", target, kind, 0, options)


def _copy_owned(source, target):
    for entry in os.scandir(source):
        path = f"{target.rstrip('/')}/{entry.name}"
        facts = entry.stat(follow_symlinks=False)
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), path)
            continue
        if entry.is_dir():
            is_new = not os.path.isdir(path)
            os.makedirs(path, exist_ok=True)
            if is_new:
                os.chmod(path, facts.st_mode & 0o7777)
                os.chown(path, facts.st_uid, facts.st_gid)
            _copy_owned(entry.path, path)
            continue
        shutil.copyfile(entry.path, path)
        os.chmod(path, facts.st_mode & 0o7777)
        os.chown(path, facts.st_uid, facts.st_gid)
