# SPDX-License-Identifier: Apache-2.0
# What the end-to-end tests share.  A test is a list of claims; it prints one line for each and fails if one
# does not hold.  The lab it runs in is named by $SEKISHO_LAB and raised once for all of them.
import json
import os
import re
import subprocess
import sys
import time
import traceback

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
LAB = f"{SOURCE}/deploy/lab/lab"
SKIPPED = 77
_claims = []


class Result:
    """How a command ended, and what it said on each stream."""

    def __init__(self, command, done):
        self.command = command
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def __str__(self):
        return (f"{' '.join(self.command)}\n  exit code {self.code}\n"
                f"  stdout: {self.out[-2000:]!r}\n  stderr: {self.err[-2000:]!r}")  # fmt: skip

    def json(self):
        return json.loads(self.out)


def claim(sentence):
    """Registers a function as the proof of a sentence."""

    def register(function):
        _claims.append((sentence, function))
        return function

    return register


def main():
    """Runs the file's claims, or those that match an argument.  To be called at its end."""
    if os.geteuid() != 0:
        print("skipped: the lab needs root")
        sys.exit(SKIPPED)
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    failed = 0
    for sentence, function in _claims:
        if wanted not in sentence:
            continue
        began = time.monotonic()
        try:
            function()
            print(f"ok      {sentence} ({time.monotonic() - began:.2f} s)", flush=True)
        except Exception as error:  # a failed claim must not hide the others
            failed += 1
            print(f"NOT OK  {sentence}", flush=True)
            if isinstance(error, AssertionError) and error.args:
                print("   ", str(error).replace("\n", "\n    "), flush=True)
            else:
                traceback.print_exc(file=sys.stdout)
    sys.exit(1 if failed else 0)


def command(words, stdin="", timeout_s=60, cwd=None):
    done = subprocess.run(words, input=stdin, capture_output=True, text=True, errors="replace",
                          timeout=timeout_s, cwd=cwd)  # fmt: skip
    return Result(words, done)


def lab(*words, **options):
    """One command of the lab program."""
    return command([LAB, *words], **options)


def on(host, *words, user=None, **options):
    """A command on a host of the lab."""
    return lab("exec", *(["--user", user] if user else []), host, "--", *words, **options)


def sekisho(*words, user=None, **options):
    """The command line of a user outside."""
    return on("client", "sekisho", *words, user=user, **options)


def expect(condition, *seen):
    """AssertionError that shows what was seen, unless the condition holds."""
    assert condition, "\n".join(str(one) for one in seen)


def expect_ok(result):
    expect(result.code == 0, result)
    return result


def expect_text(result, *texts):
    """Each text is part of what the command said on stderr."""
    for text in texts:
        expect(text in result.err, f"expected on stderr: {text!r}", result)


def expect_code(result, code):
    expect(result.code == code, f"expected exit code {code}", result)


def until(condition, what, timeout_s=10):
    """Waits until `condition()` is true; returns its value."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {what}")
        time.sleep(0.02)


def firewall(site):
    return expect_ok(lab("firewall", site, "--json")).json()


def matches(pattern, text):
    return re.fullmatch(pattern, text, re.DOTALL) is not None
