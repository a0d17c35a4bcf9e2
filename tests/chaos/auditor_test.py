#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
import unittest

import auditor
import plan


def good(job=plan.Job("j", code=3), name="siteA/abc"):
    """A job of which all is right."""
    return auditor.Evidence(
        plan={job.label: job},
        names={job.label: name},
        ran={f"{job.label}.{task}": [f"begin abc {task} 1", f"end abc {task} 1 {job.code}"] for task in range(job.tasks)},
        says={job.label: {"state": "DONE", "exit_code": job.code, "reason": ""}},
        output={(job.label, task): (job.out(task), job.err(task)) for task in job.streams_of()},
        left={},
    )


class Auditor(unittest.TestCase):
    def expect(self, evidence, *kinds):
        findings = auditor.audit(evidence)
        self.assertEqual(sorted({finding.kind for finding in findings}), sorted(kinds), [str(one) for one in findings])

    def test_finds_nothing_where_all_is_right(self):
        self.expect(good())
        self.expect(good(plan.Job("two", tasks=2)))
        self.expect(good(plan.element(plan.Job("array"), 7)))

    def test_a_job_of_which_nothing_is_known_is_lost(self):
        evidence = good()
        evidence.says = {}
        self.expect(evidence, "lost")

    def test_unknown_failed_and_cancelled_are_lost_where_nobody_wanted_that(self):
        for state in ("UNKNOWN", "FAILED", "CANCELLED", "ACTIVE", "PENDING"):
            evidence = good()
            evidence.says["j"]["state"] = state
            self.expect(evidence, "lost")

    def test_done_without_having_run_is_lost(self):
        evidence = good()
        evidence.ran = {}
        self.expect(evidence, "lost")

    def test_done_without_its_end_is_lost(self):
        evidence = good()
        evidence.ran["j.0"].pop()
        self.expect(evidence, "lost")

    def test_a_task_missing_of_two_is_lost(self):
        evidence = good(plan.Job("two", tasks=2))
        del evidence.ran["two.1"]
        self.expect(evidence, "lost")

    def test_a_second_attempt_is_doubled(self):
        evidence = good()
        evidence.ran["j.0"] += ["begin abc 0 2", "end abc 0 2 3"]
        self.expect(evidence, "doubled")

    def test_a_second_attempt_is_doubled_also_of_a_cancelled_job(self):
        evidence = good(plan.Job("j", is_cancelled=True))
        evidence.says["j"]["state"] = "CANCELLED"
        evidence.ran["j.0"] = ["begin abc 0 1", "begin abc 0 2"]
        self.expect(evidence, "doubled")

    def test_running_under_another_name_is_doubled(self):
        evidence = good()
        evidence.ran["j.0"] = ["begin xyz 0 1", "end xyz 0 1 3"]
        self.expect(evidence, "doubled")

    def test_running_though_refused_is_doubled(self):
        evidence = good()
        del evidence.names["j"]
        self.expect(evidence, "doubled")

    def test_not_running_when_refused_is_right(self):
        evidence = good()
        del evidence.names["j"]
        evidence.ran = {}
        self.expect(evidence)

    def test_a_task_that_nobody_asked_for_is_doubled(self):
        evidence = good()
        evidence.ran["other.0"] = ["begin xyz 0 1"]
        self.expect(evidence, "doubled")

    def test_another_code_is_wrong_whoever_says_it(self):
        evidence = good()
        evidence.says["j"]["exit_code"] = 0
        self.expect(evidence, "wrong exit codes")
        evidence = good()
        evidence.says["j"]["exit_code"] = None
        self.expect(evidence, "wrong exit codes")
        evidence = good()
        evidence.ran["j.0"][1] = "end abc 0 1 4"
        self.expect(evidence, "wrong exit codes")

    def test_each_byte_of_output_counts(self):
        out, err = plan.Job("j").out(0), plan.Job("j").err(0)
        for bad in (out[:-1], out + b"x", out[:50] + b"?" + out[51:], out[:100] + out[90:], b""):
            evidence = good()
            evidence.output["j", 0] = (bad, err)
            self.expect(evidence, "output bytes wrong")
        evidence = good()
        evidence.output["j", 0] = (out, err + err)
        self.expect(evidence, "output bytes wrong")

    def test_only_the_launchers_helper_may_say_that_it_waits(self):
        says = b"sekisho-rsh: a-n2: waiting for this node's agent: connection refused\n"
        job = plan.Job("j", tasks=2, is_mpi=True)
        for more, kinds in ((says, ()), (says.replace(b"waiting", b"no hope"), ("output bytes wrong",))):
            evidence = good(job)
            evidence.output["j", 0] = (job.out(0), more + job.err(0))
            self.expect(evidence, *kinds)
        evidence = good()
        evidence.output["j", 0] = (plan.Job("j").out(0), says + plan.Job("j").err(0))
        self.expect(evidence, "output bytes wrong")

    def test_a_cancelled_job_may_be_cancelled_or_done(self):
        evidence = good(plan.Job("j", is_cancelled=True))
        self.expect(evidence)
        evidence.says["j"] = {"state": "CANCELLED", "exit_code": None, "reason": ""}
        self.expect(evidence)
        evidence.ran = {}
        self.expect(evidence)
        evidence.says["j"]["state"] = "ACTIVE"
        self.expect(evidence, "lost")

    def test_a_failure_that_was_announced_needs_its_reason(self):
        evidence = good(plan.Job("j", may_fail=("another", "No space left")))
        evidence.says["j"] = {"state": "FAILED", "exit_code": None, "reason": "cannot use x: No space left on device"}
        self.expect(evidence)
        evidence.says["j"]["reason"] = "node a-n1 has lost it"
        self.expect(evidence, "lost")

    def test_an_mpi_job_may_end_otherwise_if_a_supervisor_of_its_helper_was_killed_and_only_then(self):
        job = plan.Job("j", tasks=2, is_mpi=True, may_fail=("the task's supervisor was killed",))
        ends = ({"state": "DONE", "exit_code": 255, "reason": ""}, {"state": "FAILED", "exit_code": None, "reason": "the program was killed by signal 6"})
        for says in ends:
            evidence = good(job)
            evidence.output = {("j", 0): (b"", b"")}
            evidence.says["j"] = says
            self.expect(evidence, "wrong exit codes" if says["state"] == "DONE" else "lost", *(["output bytes wrong"] if says["state"] == "DONE" else []))
            evidence.bereft = {"j"}
            self.expect(evidence)
            evidence.ran["j.1"] = ["begin abc 1 1", "begin abc 1 2"]
            self.expect(evidence, "doubled")
        evidence = good(job)
        evidence.bereft = {"j"}
        evidence.output["j", 0] = (b"", b"")  # it is said to have ended well
        self.expect(evidence, "output bytes wrong")

    def test_what_is_left_is_found(self):
        evidence = good()
        evidence.left = {"processes": ["a-n1: sleep 5"]}
        self.expect(evidence, "orphan processes")
        evidence.left = {"directories": ["a-n1: /var/lib/sekisho/agent/abc"]}
        self.expect(evidence, "leaked directories")

    def test_counts_every_kind(self):
        self.assertEqual(auditor.count([]), dict.fromkeys(auditor.KINDS, 0))
        counted = auditor.count([auditor.Finding("lost", "j", ""), auditor.Finding("lost", "k", "")])
        self.assertEqual((counted["lost"], counted["doubled"]), (2, 0))


if __name__ == "__main__":
    unittest.main()
