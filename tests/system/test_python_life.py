#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Python client over a long life: daemons that die, tasks that are cancelled, interrupts, forks, many frames.

usage: test_python_life.py [CASE]...; PIPED_TEST_LONG: 1e5 frames
"""
import asyncio
import gc
import os
import random
import signal
import sys
import threading
import time

from daemon import HEARTBEAT, LIMIT_S, check, equal
from python_client import LONG, Served, main, noise, piped, raises

FRAMES = 100000 if LONG else 10000


def pictures(count, seed=0):
    return [noise((16, 16), seed + k) for k in range(count)]


def gray(p, **options):
    return p.stream("digits", pixfmt="gray8", **options)


def kill(d):
    d.signal(signal.SIGKILL)
    equal(d.wait_exit(), -signal.SIGKILL)
    d.kill()
    d.start()


def bits(answers):
    return [a.check()[0].tobytes() for a in answers]


def free_slots(s):
    frames = []
    try:
        while True:
            frames.append(s.acquire(timeout=LIMIT_S))
    except piped.SlotsHeld:
        return frames


def all_slots_are_free(s):
    equal(len(free_slots(s)), s.slots, "free slots")


def nothing_is_lost_when_the_daemon_is_killed():
    """In the middle of a stream, with frames in flight."""
    with Served() as d, d.client() as p, gray(p) as s:
        frames = pictures(300)
        wanted = bits(s.infer(frames, copy=True))

        def source():
            for k, frame in enumerate(frames):
                if k in (50, 100, 200):
                    kill(d)
                yield frame

        answers = list(s.infer(source(), copy=True))
        equal([a.number for a in answers], list(range(301, 601)))
        equal(bits(answers), wanted)
        equal(p.reconnects, 3)
        stats = s.stats
        equal((stats["submitted"], stats["answered"], stats["reordered"], stats["duplicated"]), (600, 600, 0, 0))
        check(stats["resent"] > 0, "no frame was under way at any kill", stats)


def nothing_is_lost_in_asyncio():
    with Served() as d, d.client() as p, gray(p) as s, gray(p) as other:
        frames = pictures(200)
        wanted = bits(s.infer(frames, copy=True))

        async def source():
            for k, frame in enumerate(frames):
                if k in (40, 120):
                    await asyncio.to_thread(kill, d)
                yield frame

        async def stream():
            return [a async for a in s.ainfer(source(), copy=True)]

        async def both():
            return await asyncio.gather(stream(), *(other.infer_one(f) for f in frames))

        answers, *ones = asyncio.run(both())
        equal((bits(answers), bits(ones)), (wanted, wanted))
        equal([a.number for a in answers], list(range(201, 401)))
        equal(p.reconnects, 2)


def frames_come_back_when_nobody_does():
    come_back(0.2)
    come_back(0)


def come_back(reconnect):
    with Served() as d, d.client(reconnect=reconnect) as p, gray(p) as s:
        d.signal(signal.SIGSTOP)
        for frame in pictures(3):
            f = s.acquire()
            f.input[...] = frame
            s.submit(f)
        d.kill()
        answers = [s.next() for _ in range(3)]
        equal([(a.number, a.status) for a in answers], [(k, piped.Status.UNAVAILABLE) for k in (1, 2, 3)])
        check("no daemon at %s" % d.frames_path in answers[0].reason, answers[0].reason)
        raises(piped.NotConnected, "the stream is closed", s.run, frame)
        raises(piped.NotConnected, "", asyncio.run, s.infer_one(frame))
        raises(piped.NotConnected, "", gray, p)
        all_slots_are_free(s)


def nothing_grows():
    """Memory and descriptors after many frames in each way, streams and connections."""
    def use(p, s, frames, count):
        for a in s.infer(frames[k % len(frames)] for k in range(count)):
            a.check()[0].sum()
        for k in range(count // 10):
            s.run(frames[k % len(frames)])
            f = s.acquire()
            f.input[...] = frames[0]
            s.submit(f)
            s.next().top(1)

        async def tasks():
            async for a in s.ainfer(frames[k % len(frames)] for k in range(count // 10)):
                a.check()
            for _ in range(count // 500):
                await asyncio.gather(*(s.infer_one(f) for f in frames))

        asyncio.run(tasks())
        for _ in range(count // 500):
            with gray(p) as short:
                short.run(frames[0])
            with piped.connect(p.path) as q, gray(q) as short:
                short.run(frames[0])

    def size():
        gc.collect()
        with open("/proc/self/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"), len(os.listdir("/proc/self/fd"))

    with Served() as d, d.client() as p, gray(p) as s:
        frames = pictures(20)
        use(p, s, frames, 2000)
        bytes_before, fds_before = size()
        use(p, s, frames, FRAMES)
        bytes_after, fds_after = size()
        equal(fds_after, fds_before, "descriptors")
        check(bytes_after < bytes_before + (2 << 20), "grew from", bytes_before, "to", bytes_after)
        print("%d frames: %+d KiB" % (s.stats["answered"], (bytes_after - bytes_before) >> 10))


def interrupt_when(condition, stop):
    """Sends SIGINT to the main thread each time that condition(its frame) holds."""
    main_thread = threading.main_thread().ident

    def work():
        while not stop.wait(0.005):
            if condition(sys._current_frames()[main_thread]):
                signal.pthread_kill(main_thread, signal.SIGINT)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def an_interrupt_ends_a_wait_and_nothing_else():
    with Served() as d, d.client() as p, gray(p) as s:
        frames = pictures(50)
        wanted = bits(s.infer(frames, copy=True))
        for wait in (lambda: s.run(frames[0]), lambda: list(s.infer(frames)), lambda: gray(p),
                     lambda: asyncio.run(s.infer_one(frames[0]))):
            once = []
            d.signal(signal.SIGSTOP)
            stop = threading.Event()
            thread = interrupt_when(lambda f: not once and f.f_code.co_name in ("_poll", "_open", "select")
                                    and not once.append(1), stop)  # noqa: B023
            raises(KeyboardInterrupt, "", wait)
            stop.set()
            thread.join()
            d.signal(signal.SIGCONT)
            equal(bits(s.infer(frames, copy=True)), wanted)
        all_slots_are_free(s)


def interrupts_at_any_moment_break_nothing():
    """Answers stay those of their frames; at most a slot is lost for each interrupt that came between two lines."""
    with Served() as d, d.client() as p:
        frames = pictures(40)
        with gray(p) as s:
            wanted = bits(s.infer(frames, copy=True))
        rng, interrupts = random.Random(1), 0
        with gray(p, in_flight=4, slots=64) as s:
            for turn in range(30):
                timer = threading.Timer(rng.random() * 0.02, signal.pthread_kill,
                                        (threading.main_thread().ident, signal.SIGINT))
                try:
                    timer.start()
                    while timer.is_alive():
                        for a, w in zip(s.infer(frames), wanted):
                            equal(a.check()[0].tobytes(), w, turn)
                    timer.join()
                except KeyboardInterrupt:
                    interrupts += 1
                    timer.join()
            equal(bits(s.infer(frames, copy=True)), wanted)
            check(interrupts > 10, "only %d interrupts" % interrupts)
            a = None  # the last answer, which holds one
            lost = s.slots - len(free_slots(s))
            check(lost <= interrupts, lost, "slots were lost")
            print("%d interrupts cost %d slots" % (interrupts, lost))


def forks_know_that_they_are_not_the_parent():
    with Served() as d, d.client() as p, gray(p) as s:
        frame = pictures(1)[0]
        held = s.run(frame, copy=False)
        array = held[0]
        filled = s.acquire()
        wanted = array.tobytes()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                raises(piped.Closed, "forked", s.run, frame)
                raises(piped.Closed, "forked", p.stream, "digits")
                equal(array.tobytes(), wanted)
                del held, array, filled
                gc.collect()
                s.close()
                p.close()
                with d.client() as own, gray(own) as t:
                    equal(t.run(frame)[0].tobytes(), wanted)
                code = 0
            finally:
                os._exit(code)
        equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0, "the child")
        filled.input[...] = frame
        s.submit(filled)
        equal(bits([s.next()]), [wanted])
        equal(array.tobytes(), wanted)
        equal(p.reconnects, 0)


def cancelled_tasks_cancel_their_frames():
    with Served(env=HEARTBEAT) as d, d.client() as p, gray(p, in_flight=3) as s:
        frames = pictures(30)
        wanted = bits(s.infer(frames, copy=True))

        async def cancelled():
            d.signal(signal.SIGSTOP)
            tasks = [asyncio.ensure_future(s.infer_one(f)) for f in frames]

            async def stream():
                return [a async for a in s.ainfer(frames, copy=True)]

            tasks.append(asyncio.ensure_future(stream()))
            await asyncio.sleep(0)
            while s.stats["submitted"] < 30 + s.slots:
                await asyncio.sleep(0)
            for t in tasks[1::2]:
                t.cancel()
            await asyncio.wait(tasks[1::2])
            check(all(t.cancelled() for t in tasks[1::2]), tasks)
            try:
                await asyncio.wait_for(s.infer_one(frames[0]), 0.05)
                check(False, "no time limit")
            except asyncio.TimeoutError:
                pass
            d.signal(signal.SIGCONT)
            for k in range(0, 30, 2):
                equal((await tasks[k])[0].tobytes(), wanted[k])
            return bits([a async for a in s.ainfer(frames, copy=True)])

        equal(asyncio.run(cancelled()), wanted)
        all_slots_are_free(s)


def leaving_a_loop_cancels_what_is_in_flight():
    """What was not sent yet comes back at once, from a daemon that stands still."""
    with Served() as d, d.client() as p, gray(p, in_flight=2, slots=20) as s:
        d.signal(signal.SIGSTOP)
        raises(piped.TimedOut, "", next, s.infer(pictures(30), in_flight=18, timeout=0.05))
        equal((s.stats["submitted"], s.stats["answered"]), (18, 16))
        d.signal(signal.SIGCONT)
        all_slots_are_free(s)


def closing_wakes_who_waits():
    """Another thread closes the connection while one polls its descriptors, at a daemon that stands still."""
    with Served() as d:
        for k in range(20):
            p = d.client()
            s, ended = gray(p), []

            def wait():
                try:
                    s.run(pictures(1)[0])
                except BaseException as e:  # OSError, where the descriptors were closed under poll()
                    ended.append(e)

            d.signal(signal.SIGSTOP)
            t = threading.Thread(target=wait)
            t.start()
            while s.stats["submitted"] < 1 or (k % 2 and not p._leader):
                time.sleep(0)
            p.close()
            t.join(LIMIT_S)
            d.signal(signal.SIGCONT)
            equal([type(e) for e in ended], [piped.Closed], ended)
            equal((p._p, p._wake_fds), (piped._libpiped.ffi.NULL, ()), "the descriptors were not closed")


def answers_do_not_wait_for_the_next_frame():
    """An asynchronous source that gives a frame only when the one before is answered."""
    with Served() as d, d.client() as p, gray(p) as s:
        async def talk():
            answered = asyncio.Event()
            answered.set()

            async def source():
                for frame in pictures(20):
                    await answered.wait()
                    answered.clear()
                    yield frame

            count = 0
            async for a in s.ainfer(source()):
                a.check()
                count += 1
                answered.set()
            equal(count, 20)
            async for a in s.ainfer(source()):  # left early: the source is ended, too
                break
            await s.infer_one(pictures(1)[0])

        asyncio.run(asyncio.wait_for(talk(), LIMIT_S))
        all_slots_are_free(s)


def one_loop_at_a_time():
    with Served() as d, d.client() as p, gray(p) as s:
        frame = pictures(1)[0]

        async def one():
            return (await s.infer_one(frame))[0].tobytes()

        wanted = asyncio.run(one())
        equal(asyncio.run(one()), wanted, "in a second loop")
        d.signal(signal.SIGSTOP)

        async def two():
            first = asyncio.ensure_future(one())
            await asyncio.sleep(0)
            await asyncio.to_thread(raises, piped.Error, "another event loop", asyncio.run, one())
            d.signal(signal.SIGCONT)
            return await first

        equal(asyncio.run(two()), wanted)

        async def closed():
            d.signal(signal.SIGSTOP)
            first = asyncio.ensure_future(one())
            await asyncio.sleep(0)
            p.close()
            d.signal(signal.SIGCONT)
            await first

        raises(piped.Closed, "closed", asyncio.run, closed())


if __name__ == "__main__":
    main([nothing_is_lost_when_the_daemon_is_killed, nothing_is_lost_in_asyncio, frames_come_back_when_nobody_does,
          nothing_grows, an_interrupt_ends_a_wait_and_nothing_else, interrupts_at_any_moment_break_nothing,
          forks_know_that_they_are_not_the_parent, cancelled_tasks_cancel_their_frames,
          leaving_a_loop_cancels_what_is_in_flight, closing_wakes_who_waits,
          answers_do_not_wait_for_the_next_frame, one_loop_at_a_time])
