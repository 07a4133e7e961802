#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""piped in a virtual machine with unequal cores: execution places, governors, limits, cores that go.

usage: test_vm.py SOURCE_ROOT BUILD_ROOT x86|arm64 [CASE...]

Part of `tests/run --vm` only: it takes minutes, since the machines are emulated in software. What is downloaded and
unpacked is kept: for x86 in BUILD_ROOT/vm-cache, for arm64 beside its cross build, which PIPED_TEST_ARM64 names.
guest.py and guest_arm64.py have the cases; judged is what the daemon says and answers, not how fast, since an emulated
CPU does not follow its frequency. What cannot run is a failure.
"""
import os
import re
import sys
import tempfile

import arm64
import machine
import x86

ROOT, BUILD, NAME = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
WANTED = sys.argv[4:]
MACHINE = {"x86": x86, "arm64": arm64}[NAME]


def main():
    if not os.environ.get("PIPED_TEST_VM"):
        print("skipped: tests in a virtual machine: they are part of tests/run --vm")
        return 77
    with tempfile.TemporaryDirectory(prefix="piped-vm-") as folder:
        try:
            command = MACHINE.prepare(ROOT, BUILD, folder, WANTED)
            text, why = machine.boot(folder, command, MACHINE.LIMIT_S)
        except machine.Missing as e:
            print("FAIL vm: %s" % e)
            return 1
        machine.step("boot, run, power off")
    at = text.find("-- guest")
    print(text[at if at >= 0 else -4000:])
    results = re.findall(r"^cases: (\d+) passed, (\d+) failed, \d+ skipped$", text, re.M)
    if why or len(results) < MACHINE.RESULTS:
        print("FAIL vm: %s" % (why or "the guest ended without a result"))
        return 1
    return 1 if any(failed != "0" or passed == "0" for passed, failed in results) else 0


sys.exit(main())
