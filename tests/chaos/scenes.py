# SPDX-License-Identifier: Apache-2.0
# What is played once in a cycle: a credential that ends in mid-job, disks that are full, planted faults; and the look
# at what is left when all is over.
import os
import pathlib
import time

import plan
import world as worlds
from plan import Job
from wave import ASK_AGAIN

# Reasons by which a job may fail on a full disk: of the queue server, docs/operations/qserver.md; of a node.
NO_ROOM = "the site has no room for more output"
NO_SPACE = "No space left on device"
PROXY = "/home/alice/short/proxy"
# A proxy made by hand: `sekisho proxy init` makes none that ends so soon.
MAKE_PROXY = """set -e; cd /home/alice; rm -rf short; mkdir -m 700 short; cd short; touch index; echo 77 > serial
end=$(date -u -d '+{seconds} seconds' +%y%m%d%H%M%SZ)
cat > ca.cnf <<X
[ca]
default_ca=d
[d]
database=index
new_certs_dir=.
serial=serial
default_md=sha256
policy=p
[p]
organizationName=optional
organizationalUnitName=optional
commonName=optional
[x]
proxyCertInfo=critical,language:id-ppl-inheritAll
X
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -keyout key -subj '/O=Sekisho Lab/OU=People/CN=Alice Liddell/CN=4711' -out csr
openssl ca -batch -notext -preserveDN -config ca.cnf -extensions x -cert ~/.globus/usercert.pem -keyfile ~/.globus/userkey.pem -startdate 200101000000Z -enddate $end -in csr -out crt
(umask 077; cat crt key ~/.globus/usercert.pem > proxy)"""


_ENDED = "[proxy-expired]"  # before its submission came through
_NOT_GIVEN = "your credential signs none for the job"  # it was accepted, and waits for another
_ENDED_INSIDE = f"refused by the queue server: {_ENDED}"  # before it came to the queue server


def credential_ends(world, wave, seconds=15):
    """Jobs by a credential that ends while they run: they go on, and a fresh one asks for what came of them."""
    world.shell("client", MAKE_PROXY.format(seconds=seconds), user="alice")
    began = time.monotonic()
    short, given = (Job(name, code=code, pause_s=seconds + 2, may_fail=(_ENDED_INSIDE,)) for name, code in (("short", 11), ("given", 12)))
    is_known = wave.submit(short, proxy=PROXY, done_if=(_ENDED,))
    is_given = wave.submit(given, "--delegate", proxy=PROXY, done_if=(_ENDED, _NOT_GIVEN))
    time.sleep(max(0.0, began + seconds + 1 - time.monotonic()))  # it has ended by the wall's clock
    while True:
        code, out, err = wave.sekisho("submit", "-r", worlds.SITE, "--request-id", f"{wave.prefix}late", "--", "/bin/true", proxy=PROXY)
        if code not in ASK_AGAIN or _ENDED in err or time.monotonic() > wave.deadline:
            break
        time.sleep(0.2)
    if code == 0 or out or _ENDED not in err:
        wave.problems.append(f"a submission by a credential that has ended: exit code {code}, {out!r}, {err[:300]}")
    # The answer to a try that had done it may have been lost: with a fresh proxy the same request tells of it.
    if not is_known:
        wave.submit(short)
    if not is_given:
        wave.submit(given, "--delegate", done_if=(_NOT_GIVEN,))
    renew_if_asked(wave, "given")


def renew_if_asked(wave, label):
    """A delegation that kills have delayed for so long asks the job's user for another credential."""
    while time.monotonic() < wave.deadline:
        seen = wave.statuses().get(wave.prefix + label, {})
        if seen.get("state") not in ("UNSUBMITTED", "STAGE_IN"):
            return
        if "waits for its user's credential" in seen.get("reason", ""):
            wave.refresh(label)
        time.sleep(0.5)


def disk_of_head_full(world, wave):
    """What runs goes on, what comes is refused with a word or kept, and all is well when there is room again."""
    wave.submit_many([Job(f"run{i}", code=i, pause_s=2, stream="file") for i in range(4)])
    wave.submit(Job("held", code=5, stream="file", pause_s=0), "--hold")
    world.fill("a-head")
    try:
        late = Job("late", code=6, stream="file", pause_s=0)
        label = wave.prefix + late.label
        code, out, err = wave.sekisho("submit", "-r", worlds.SITE, "--request-id", label, *wave.streams(label), "--",
                                      f"{plan.FOLDER}/work", label, *map(str, (late.code, late.lines, late.pause_s)))  # fmt: skip
        if code != 0 and (code != 125 or not err.startswith("sekisho: ") or out):
            wave.problems.append(f"a submission to a site whose disk is full: exit code {code}, {out!r}, {err[:300]}")
        if code != 0:
            wave.refusals.append(err.splitlines()[0])
    finally:
        world.empty("a-head")
    wave.submit(late)
    wave.release("held")


def disk_of_node_full(world, wave):
    """A task that cannot begin for want of room fails with that reason; those that run keep their exit codes."""
    running = [Job(f"run{i}", code=20 + i, pause_s=2, stream="file") for i in range(2)]
    wave.submit_many(running)
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline and any(
            one.get("state") != "ACTIVE" for one in wave.statuses().values()):
        time.sleep(0.05)
    for node in ("a-n1", "a-n2"):
        world.fill(node)
    try:
        wave.submit(Job("none", code=7, pause_s=0, stream="file", may_fail=(NO_SPACE,)))
        wave.settle(10)
    finally:
        for node in ("a-n1", "a-n2"):
            world.empty(node)
    wave.submit(Job("after", code=8, pause_s=0))


# Planted faults: kind -> what the auditor must call it.
PLANTS = {"lost": "lost", "double": "doubled", "wrong-exit": "wrong exit codes", "output": "output bytes wrong",
          "orphan": "orphan processes", "leak": "leaked directories"}  # fmt: skip
# What a task does besides.
_SCRIPTS = {
    "double": 'rm "./$name.plant"; "$HOME/chaos/work" "$@" > /dev/null 2>&1',
    "wrong-exit": "code=$((code + 1))",
    "output": "echo surplus",
}
_ORPHAN, _LEAK = "sleep 4711", "/var/lib/sekisho/agent/plantedplante"


def plant(world, wave, kind):
    """Makes one job, or the site, be as it must not."""
    label = f"{wave.prefix}{kind}"
    if kind in _SCRIPTS:
        with open(world.path("a-head", f"/home/alice/{plan.RAN}/{label}.0.plant"), "w") as file:
            file.write(_SCRIPTS[kind] + "\n")
        os.chmod(file.name, 0o644)
    if kind == "lost":
        wave.submit(Job(kind), "--hold")
        wave.cancel(kind)
    elif kind in _SCRIPTS:
        wave.submit(Job(kind, code=1, pause_s=0))
    elif kind == "orphan":
        world.shell("a-n1", f"setsid {_ORPHAN} > /dev/null 2>&1 &", user="alice")
    else:
        world.shell("a-n1", f"mkdir {_LEAK}")


def unplant(world):
    world.on("a-n1", "pkill", "-f", _ORPHAN)
    world.on("a-n1", "rmdir", _LEAK)


# Prints what is left on a host: processes of the account, and directories and files that a job's end takes away.
_LEFT = """
import glob, os, pwd, re, sys
own = os.getpid()
uid = pwd.getpwnam("alice").pw_uid
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        words = " ".join(open(f"/proc/{pid}/cmdline").read().replace("\\0", " ").split())
        if int(pid) == own:
            continue
        if os.stat(f"/proc/{pid}").st_uid == uid and "sekisho-jobmanager" not in words:
            print("processes", f"{pid} {words}")
        elif "sekisho-task" in words or "sekisho-stager" in words:
            print("processes", f"{pid} {words}")
    except OSError:
        pass
known = set(sys.stdin.read().split())
for path in glob.glob("/var/lib/sekisho/agent/*") + glob.glob("/var/lib/sekisho/agent/.pm*/*"):
    print("directories", path)
for path in glob.glob("/var/lib/sekisho/qserver/spool/*"):
    if os.path.basename(path) not in known:
        print("directories", path)
for top, folders, files in os.walk("/sys/fs/cgroup"):
    for name in folders:
        if re.fullmatch(r"[a-z2-7]{13}(\\[\\d+\\])?\\.\\d+", name):
            print("directories", os.path.join(top, name))
if os.uname().nodename == "a-head":  # whose homes are the nodes'
    for path in glob.glob("/home/alice/.sekisho/cache/*.part") + glob.glob("/home/alice/.sekisho/jobs/*"):
        if path.endswith(".part") or os.path.basename(path) not in known:
            print("directories", path)
    for path in glob.glob("/home/alice/chaos/.*") + glob.glob("/home/alice/chaos/scratch/*") + glob.glob("/home/alice/.sekisho/cache/.*"):
        print("directories", path)
for path in glob.glob("/tmp/*") + glob.glob("/run/sekisho/*"):
    if path not in known and not re.search(r"/x509up_u|/run/sekisho/(agent|qserver|allocator|gatekeeper|nxproxy)", path):
        print("directories", path)
"""


def _checkout():
    """Directories of hosts in which ours is mounted."""
    return [worlds.SOURCE, *map(str, pathlib.Path(worlds.SOURCE).parents)]


def left(world, ids, timeout_s=80):
    """What is left of the jobs' at the site, {"processes": [...], "directories": [...]}, once it does not get less."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = {"processes": [], "directories": []}
        for host in ("a-head", "a-n1", "a-n2", "a-dmz"):
            done = worlds.subprocess.run(
                [worlds.LAB, "--name", world.name, "exec", host, "--", "/usr/bin/python3", "-c", _LEFT],
                input="\n".join([*ids, *_checkout()]), capture_output=True, text=True)  # fmt: skip
            for line in done.stdout.splitlines():
                kind, _, what = line.partition(" ")
                found[kind].append(f"{host}: {what}")
            if done.returncode != 0:
                found["directories"].append(f"{host}: could not be looked at: {done.stderr}")
        if not any(found.values()) or time.monotonic() > deadline:
            return found
        time.sleep(0.5)
