#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# What a wave takes for the site's answer, of commands that are played here.
import unittest
from unittest import mock

from plan import Job
from wave import Wave


class Waves(unittest.TestCase):
    def submit(self, *ends):
        """A wave whose time is over, and whether its job was accepted."""
        wave = Wave(None, "w-", 0)
        with mock.patch.object(Wave, "sekisho", side_effect=ends):
            return wave, wave.submit(Job("j"))

    def test_a_job_that_was_named_is_there_though_the_command_failed_after_that(self):
        wave, is_accepted = self.submit((125, b"siteA/abc\n", "sekisho: job abc is FAILED\n"))
        self.assertEqual((is_accepted, wave.names), (True, {"w-j": "siteA/abc"}))
        self.assertEqual(len(wave.problems), 1, "its user complains all the same")

    def test_a_job_that_was_refused_has_no_name(self):
        wave, is_accepted = self.submit((64, b"", "sekisho: bad RSL\n"))
        self.assertEqual((is_accepted, wave.names), (False, {}))
        self.assertEqual(len(wave.problems), 1)

    def test_a_job_that_was_accepted_is_no_complaint(self):
        wave, is_accepted = self.submit((0, b"siteA/abc\n", ""))
        self.assertEqual((is_accepted, wave.names, wave.problems), (True, {"w-j": "siteA/abc"}, []))


if __name__ == "__main__":
    unittest.main()
