# SPDX-License-Identifier: Apache-2.0
# What jobs are meant to do: known before they run, so that what came of them can be judged.  Pure.
import dataclasses

FOLDER = "chaos"  # below the account's home at the site
RAN = f"{FOLDER}/ran"
SCRATCH = f"{FOLDER}/scratch"

# The program of every job.  ran/LABEL.TASK gets a line as a task begins, in whatever attempt, and one as it ends; what
# it prints, and its exit code, are known from its arguments.  In an array the label is LABEL.INDEX.
WORK = f"""#!/bin/sh
# work LABEL CODE LINES PAUSE [fed|mpi]
cd "$HOME/{RAN}" || exit 120
task=$SEKISHO_TASK
if [ "$5" = mpi ]; then
  task=$PMI_RANK
  if [ "$task" = 0 ]; then exec > /dev/null 2>&1; fi
fi
name=$1${{SEKISHO_ARRAY_INDEX:+.$SEKISHO_ARRAY_INDEX}}.$task
attempt=1
if [ -e "$name" ]; then while read -r word _; do [ "$word" = end ] || attempt=$((attempt + 1)); done < "$name"; fi
echo "begin $SEKISHO_JOB_ID $task $attempt" >> "$name"
say() {{ seq -f "$name line %.0f of what a job of the chaos suite has to say" "$1" "$2"; }}
half=$(($3 / 2))
say 1 $half
echo "$name half way" >&2
sleep "$4"
if [ "$5" = fed ]; then cat; fi
say $((half + 1)) "$3"
code=$2
if [ -e "$name.plant" ]; then . "./$name.plant"; fi
echo "end $SEKISHO_JOB_ID $task $attempt $code" >> "$name"
exit "$code"
"""


@dataclasses.dataclass(frozen=True)
class Job:
    """One job, or one element of an array, which is then called LABEL.INDEX."""

    label: str
    code: int = 0
    tasks: int = 1
    lines: int = 60
    pause_s: float = 0.3
    is_cancelled: bool = False  # its user cancels it: it may end so, and need not run
    may_fail: tuple[str, ...] = ()  # a reason with any of these words is a right end, too: its user was told
    node: str = ""  # where it is to run, if it matters
    stream: str = "spool"  # where its output goes; "file": to the home; of one task
    is_fed: bool = False  # what it reads it prints, half way; of one task
    is_mpi: bool = False  # two ranks under the site's mpirun, each on a node of its own: the system has one task of it, and only
    # the second rank prints, so that every byte comes through the launcher's helper

    def __post_init__(self):
        assert not self.is_mpi or (self.tasks == 2 and self.code == 0)  # mpirun has words of its own about another code

    def may_fail_by(self, words):
        return any(reason in words for reason in self.may_fail)

    def streams_of(self):
        """The tasks that the system has output of."""
        return range(1 if self.is_mpi else self.tasks)

    def out(self, task):
        """What the task prints on standard output."""
        name = self._speaker(task)
        says = [f"{name} line {number} of what a job of the chaos suite has to say\n" for number in range(1, self.lines + 1)]
        return "".join([*says[:self.lines // 2], self.food(), *says[self.lines // 2:]]).encode()

    def food(self):
        """What it is fed with."""
        return "".join(f"{self.label} reads line {number}\n" for number in range(2000)) if self.is_fed else ""

    def err(self, task):
        return f"{self._speaker(task)} half way\n".encode()

    def _speaker(self, task):
        return f"{self.label}.{1 if self.is_mpi else task}"

    def words(self):
        """The command, as an argument list.  Of an array the label is the array's."""
        return [f"{FOLDER}/work", self.label, str(self.code), str(self.lines), str(self.pause_s), *(["fed"] if self.is_fed else ["mpi"] if self.is_mpi else [])]

    def rsl(self):
        words = " ".join(self.words()[1:])
        count = f"(count={self.tasks})" if self.tasks > 1 else ""
        place = f"{FOLDER}/out/{self.label}"
        out = f"(stdout={place})(stderr={place}.err)" if self.stream == "file" else ""
        node = f"(node={self.node})" if self.node else ""
        mpi = "(jobtype=mpi)(host_count=2)" if self.is_mpi else ""
        return f"&(executable={FOLDER}/work)(arguments={words}){count}{mpi}{node}{out}"


def element(array, index):
    """The plan of an array's element."""
    return dataclasses.replace(array, label=f"{array.label}.{index}")
