#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""pipedinfer while things happen: seeks, late frames, new formats, slow models, daemons that die, ends in the middle."""
import os
import random
import signal

import test_outputs
from daemon import DIGITS, LIMIT_S, check, equal
from gst import LATE, SANITIZED, SINK, Served, main

OK, UNAVAILABLE, DROPPED = 0, 6, 9
EOS = {"eos": True, "error": None}
RATE = 30
SMALL = "video/x-raw,format=GRAY8,width=64,height=48,framerate=%d/1" % RATE


def source(count=-1, more="", caps=SMALL):
    return "videotestsrc num-buffers=%d %s ! %s ! pipedinfer name=infer model=text" % (count, more, caps)


def pts_of(k):
    return k * 10**9 // RATE


def statuses(frames):
    return [f["result"]["status"] for f in frames]


def sent(p, count):
    """Waits until so many frames are with the daemon; they are not answered meanwhile."""
    stats = p.ask("stats")
    while stats["in-place"] + stats["copied"] < count:
        stats = p.ask("stats")
    return stats


def seeks_flush_frames_in_flight():
    with Served() as d, d.play(source() + " ! " + SINK) as p:
        chance = random.Random(1)
        equal([f["pts"] for f in p.pull(5)], [pts_of(k) for k in range(5)])
        for _ in range(20):
            second = chance.randrange(1000)
            equal(p.ask("seek", second * 10**9), {"done": True})
            frames = p.pull(chance.randrange(1, 12))
            equal([f["pts"] for f in frames], [pts_of(RATE * second + k) for k in range(len(frames))], second)
            equal(statuses(frames), [OK] * len(frames))
            equal({f["result"]["text"] for f in frames}, {"ääb"})
        stats = p.ask("stats")
        equal((stats["dropped"], stats["failed"], stats["reconnects"]), (0, 0, 0), stats)


def a_seek_flushes_what_the_daemon_holds():
    """The daemon stands still meanwhile: nothing waits for it but the next answers."""
    with Served() as d, d.play(source(more="pattern=ball") + " ! " + SINK) as p:
        p.pull(3)
        d.signal(signal.SIGSTOP)
        try:
            equal(p.ask("seek", 7 * 10**9), {"done": True})
        finally:
            d.signal(signal.SIGCONT)
        frames = p.pull(10)
        equal([f["pts"] for f in frames], [pts_of(7 * RATE + k) for k in range(10)])
        equal(statuses(frames), [OK] * 10)


def the_end_of_the_stream_comes_after_the_last_frame():
    with Served() as d:
        for count in (1, 2, 7, 8, 9, 30):
            with d.play(source(count) + " in-flight=%d ! %s" % (count % 3 + 1, SINK)) as p:
                equal([f.get("pts") for f in p.pull(count + 1)], [pts_of(k) for k in range(count)] + [None])


def late_frames_are_not_sent():
    """What a sink says was late until second 1 is not computed, but passes."""
    with Served() as d, d.play(source(60) + " ! " + SINK) as p:
        first = p.pull(2)
        equal(p.ask("qos", pts_of(RATE), 0), {"done": True})
        frames = first + p.pull(58)
        equal([f["pts"] for f in frames], [pts_of(k) for k in range(60)])
        late = [k for k, s in enumerate(statuses(frames)) if s == LATE]
        equal(statuses(frames), [LATE if k in late else OK for k in range(60)])
        check(late and late[0] <= 2 + 8 + 4, "frames that were on their way:", late)
        equal(late, list(range(late[0], RATE + 1)), "until second 1")
        check(all(not frames[k]["result"]["decoded"] for k in late), "a late frame has an answer")
        equal(p.pull(1), [EOS])
        stats, said = p.ask("stats"), [m for m in p.ask("said") if "qos" in m]
        equal((stats["late"], stats["answered"]), (len(late), 60 - len(late)))
        equal([m["dropped"] for m in said if m["qos"] == "infer"], list(range(1, len(late) + 1)))
    with Served() as d, d.play(source(40) + " qos=false ! " + SINK) as p:
        p.pull(2)
        p.ask("qos", pts_of(RATE), 0)
        equal(statuses(p.pull(38)), [OK] * 38, "qos=false")


def latency_is_answered():
    with Served() as d:
        live = "is-live=true"
        with d.play(source(-1, live) + " latency-ms=200 ! " + SINK) as p:
            p.pull(2)
            answer = p.ask("latency")
            equal((answer["done"], answer["live"], answer["min"]), (True, True, pts_of(1) + 200 * 10**6), answer)
            equal(answer["max"], -1, "the source holds back as much as it must")
        with d.play(source(-1, live) + " ! " + SINK) as p:
            p.pull(5)
            answer = p.ask("latency")
            check(answer["min"] > pts_of(1), "what frames took is not added:", answer)
        with d.play(source(50) + " ! " + SINK) as p:
            p.pull(5)
            equal(p.ask("latency")["live"], False)


def policies_drop_frames_that_pass_without_answers():
    """The daemon stands still until eight frames are there. Then the newest replaces those that wait, or they are refused."""
    for policy, name, status in (("latest", "dropped", DROPPED), ("reject", "resource_exhausted", 5)):
        with Served(config={"frames_in_flight": 2}) as d, d.play(source(more="pattern=ball") + " policy=%s ! %s" % (
                policy, SINK)) as p:
            p.pull(1)
            d.signal(signal.SIGSTOP)
            try:
                stats = p.ask("stats")
                sent(p, stats["answered"] + 1)
            finally:
                d.signal(signal.SIGCONT)
            frames, asked = [], 0
            while not any(f["result"]["status"] == status for f in frames) and asked < 3000:
                frames += p.pull(10)
                asked += 10
            check(set(statuses(frames)) == {OK, status}, policy, set(statuses(frames)))
            equal([f["pts"] for f in frames], [pts_of(k + 1) for k in range(len(frames))], policy)
            for f in frames:
                r = f["result"]
                equal(r["decoded"], r["status"] == OK, r)
                check(r["status"] == OK or r["reason"], "no reason")
            check(any(m.get("qos") == "infer" for m in p.ask("said")), name, "is not told")
            check(p.ask("stats")["dropped"] > 0, name)


def a_restart_loses_nothing():
    with Served() as d, d.play(source(300, "pattern=ball") + " ! " + SINK) as p:
        frames = p.pull(20)
        for number in (signal.SIGKILL, signal.SIGTERM):
            d.signal(number)
            d.wait_exit()
            d.kill()
            d.start()
            frames += p.pull(100)
        frames += p.pull(80)
        equal(statuses(frames), [OK] * 300)
        equal([f["pts"] for f in frames], [pts_of(k) for k in range(300)])
        equal({f["result"]["text"] for f in frames}, {"ääb"})
        stats = p.ask("stats")
        equal((stats["reconnects"], stats["answered"]), (2, 300), stats)
        equal(p.pull(1), [EOS])


def a_reload_changes_what_answers_mean():
    """Each answer is decoded as the model says that computed it."""
    with Served() as d, d.play(source(300, "pattern=ball") + " ! " + SINK) as p:
        texts = [f["result"]["text"] for f in p.pull(20)]
        letters = os.path.join(test_outputs.FOLDER, "letters.txt")
        with open(letters + ".new", "w", encoding="utf-8") as f:
            f.write("o\nk\n")
        os.rename(letters + ".new", letters)
        d.call("Reload")
        texts += [f["result"]["text"] for f in p.pull(280)]
        old = texts.count("ääb")
        equal(texts, ["ääb"] * old + ["ook"] * (300 - old))
        check(20 <= old < 300, old)
        equal(p.ask("stats")["reconnects"], 0)


def a_new_format_waits_for_a_daemon_that_went_away():
    """It comes when all frames of the old one are answered; nobody listens at the socket then."""
    with Served() as d, d.play("concat name=c ! pipedinfer name=infer model=text timeout-ms=%d ! %s videotestsrc num-buffers=3 ! "
                               "%s ! c. videotestsrc num-buffers=3 ! video/x-raw,format=RGB,width=61,height=45,framerate=%d/1 "
                               "! c." % (1000 * LIMIT_S, SINK, SMALL, RATE)) as p:
        sent(p, 3)
        d.signal(signal.SIGTERM)  # they are answered first
        d.wait_exit()
        d.kill()
        frames = p.pull(2)  # the sink has the third, and the second format comes
        d.start()
        frames += p.pull(4)
        equal(statuses(frames), [OK] * 6)
        equal([f["pts"] for f in frames], 2 * [pts_of(k) for k in range(3)])
        equal(p.pull(1), [EOS])


def a_daemon_that_stays_away_is_an_error():
    with Served(expect_exit=None) as d, d.play(source() + " timeout-ms=300 ! " + SINK) as p:
        p.pull(5)
        d.signal(signal.SIGKILL)
        d.wait_exit()
        last = p.pull(50)[-1]
        check(last["error"] and last["eos"] is not None, last)
        check("300 ms" in last["error"] or "daemon" in last["error"] or "connect" in last["error"], last)
        d.kill()
        d.start()


def a_new_format_gets_a_new_stream():
    """Buffers of the old one are still held. The last frames of each format have their answers, too."""
    parts = ("format=GRAY8,width=64,height=48", "format=NV12,width=128,height=48", "format=RGB,width=61,height=45",
             "format=GRAY8,width=64,height=48")
    with Served() as d, d.play("concat name=c ! pipedinfer name=infer model=text ! %s %s" % (SINK, " ".join(
            "videotestsrc num-buffers=10 ! video/x-raw,framerate=30/1,%s ! c." % part for part in parts))) as p:
        frames = p.pull(41)
        equal(statuses(frames[:40]), [OK] * 40)
        equal(frames[40], EOS)
    with Served(models={"digits": DIGITS}) as d, d.play("videotestsrc num-buffers=30 ! tee name=t t. ! queue ! "
                                                        "pipedinfer name=infer ! %s t. ! queue ! fakesink" % SINK) as p:
        equal(statuses(p.pull(30)), [OK] * 30, "buffers that others have, too")


def it_may_end_at_any_time():
    """Frames are in flight, and buffers in slots are held; the daemon sees streams close, and its limits stay free."""
    with Served() as d:
        for k in range(8):
            with d.play(source(-1, "pattern=ball") + " ! queue ! " + SINK) as p:
                p.pull(k)
        model = next(m for m in d.status()["models"] if m["name"] == "text")
        check(model["frames"]["admitted"] >= 28, model["frames"])


def a_long_stream_needs_no_more_memory():
    """Of the process that has the pipeline, after the first thousand frames."""
    if SANITIZED:
        return "a sanitizer keeps what was freed"
    count = 100000 if os.environ.get("PIPED_TEST_LONG") else 4000
    with Served() as d, d.play(source(count + 1000, "pattern=ball") + " ! " + SINK) as p:
        def pages():
            with open("/proc/%d/statm" % p.process.pid, encoding="ascii") as f:
                return int(f.read().split()[1])
        p.pull(1000)
        before = pages()
        for _ in range(count // 1000):
            equal(len(p.pull(1000)), 1000)
        check(pages() < before + 512, "pages:", before, pages())
    return None


main((seeks_flush_frames_in_flight, a_seek_flushes_what_the_daemon_holds, the_end_of_the_stream_comes_after_the_last_frame,
      late_frames_are_not_sent, latency_is_answered, policies_drop_frames_that_pass_without_answers, a_restart_loses_nothing,
      a_reload_changes_what_answers_mean,
      a_new_format_waits_for_a_daemon_that_went_away, a_daemon_that_stays_away_is_an_error,
      a_new_format_gets_a_new_stream, it_may_end_at_any_time,
      a_long_stream_needs_no_more_memory))
