#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Shows the plan of a model and the plans that no other beats. Serves by another if asked; then tells each change.

usage: plan.py [--model NAME] [--set PLAN] [--auto] [--watch COUNT]
"""
import argparse

import piped


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model")
    parser.add_argument("--set", metavar="PLAN")
    parser.add_argument("--auto", action="store_true")
    parser.add_argument("--watch", type=int, default=0, metavar="COUNT")
    args = parser.parse_args()
    c = piped.control()
    with c.subscribe() as events:  # before anything changes
        try:
            if args.set:
                c.set_plan(args.set, args.model)
            if args.auto:
                c.auto_plan(args.model)
        except piped.ControlError as e:
            raise SystemExit(str(e)) from None
        plan = c.get_plan(args.model)
        print("%s (%s), epoch %d" % (plan.plan, plan.algorithm, plan.epoch))
        for warning in plan.warnings:
            print("warning:", warning)
        for one in c.plan_front(args.model, max=5).front:
            print("  %-32s %8.1f frames/s %8.2f ms" % (one["plan"], one["fps"], one["latency_ms"]))
        for _, reply in zip(range(args.watch), events):
            print("event:", reply.event)


if __name__ == "__main__":
    main()
