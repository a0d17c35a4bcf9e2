# SPDX-License-Identifier: Apache-2.0
# A lab's daemon that is killed at a point of its own: tests/chaos/killpoints.c.
import os
import shutil
import sys

import support as t

sys.path += [f"{t.SOURCE}/tests/chaos", f"{t.SOURCE}/deploy/lab"]

import points  # noqa: E402
import state  # noqa: E402

LIBRARY = os.environ.get("SEKISHO_KILL_POINTS", f"{os.environ.get('SEKISHO_BIN', '')}/../chaos/killpoints.so")


def lay(lab_name, host, program):
    """The control of what this program does on that host from its next start on."""
    root = f"/proc/{state.init_of(lab_name, host)}/root"
    os.makedirs(f"{root}/run/chaos", exist_ok=True)
    new = f"{root}/run/chaos/.killpoints.so.new"  # another daemon may run with the one that is there
    shutil.copy(LIBRARY, new)
    os.chmod(new, 0o755)
    os.rename(new, f"{root}/run/chaos/killpoints.so")
    with open(f"{root}/etc/ld.so.preload", "w") as preload:
        preload.write("/run/chaos/killpoints.so\n")
    return points.Control(f"{root}/run/chaos/{program}")
