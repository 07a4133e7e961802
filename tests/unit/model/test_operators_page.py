#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The list of all operators in docs/operators.md is what the tables of model/lower/ say.

usage: test_operators_page.py OPERATORS_DOC docs/operators.md
"""
import sys

import operators_page

with open(sys.argv[2], encoding="utf-8") as f:
    same = f.read() == operators_page.made(sys.argv[1], sys.argv[2])
print(("ok" if same else "FAIL") + " all_operators_are_listed"
      + ("" if same else ": write them again: ninja -C build operators-page"))
print(f"cases: {int(same)} passed, {int(not same)} failed, 0 skipped")
sys.exit(not same)
