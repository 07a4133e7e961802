#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Python client: its answers are the bits of `pipectl infer --raw`; what arrays it takes and gives; what is refused.
"""
import gc
import signal
import threading
import time

import pyclient as pc
from daemon import HEARTBEAT, check, equal
from python_client import Served, heldout, main, noise, np, piped, raises, write_boxes, write_mixed


def raw_of(d, model, name, data):
    """Return: the floats that pipectl says for a file."""
    path = d.path(name)
    with open(path, "wb") as f:
        f.write(data)
    out = path + ".out"
    d.pipectl("infer", "--model", model, "--raw", out, path)
    with open(out, "rb") as f:
        return f.read()


def pnm(pixels):
    kind = 6 if pixels.ndim == 3 else 5
    return b"P%d\n%d %d\n255\n" % (kind, pixels.shape[1], pixels.shape[0]) + pixels.tobytes()


def bits_are_those_of_pipectl():
    """Pictures of several sizes and formats, tensors, halves; by infer(), run() and acquire()."""
    with Served() as d, d.client() as p:
        for pixfmt, model, tail in (("gray8", "digits", ()), ("rgb24", "colour", (3,)), ("bgr24", "colour", (3,)),
                                    ("rgb24", "digits", (3,)), ("gray8", "colour", ())):
            with p.stream(model, pixfmt=pixfmt, size=(40, 40)) as s:
                for k, (height, width) in enumerate(((16, 16), (20, 20), (7, 33), (40, 40))):
                    pixels = noise((height, width) + tail, k)
                    wanted = raw_of(d, model, "a.pnm", pnm(pixels[..., ::-1] if pixfmt == "bgr24" else pixels))
                    equal([a[0].tobytes() for a in s.infer([pixels, pixels])], [wanted] * 2, pixfmt)
                    a = s.run(pixels).check()
                    equal((a[0].tobytes(), a.size), (wanted, (width, height)))
                    equal(next(s.infer([pixels[::-1][::-1]]))[0].tobytes(), wanted, "an array with odd strides")
                    f = s.acquire((width, height), stride=40 * (tail or (1,))[0])
                    f.input[...] = pixels
                    s.submit(f)
                    equal(s.next()[0].tobytes(), wanted, "a picture with gaps between rows")
        with p.stream("colour") as s, p.stream("colour", input_dtype="f16") as half:
            x = np.random.default_rng(3).standard_normal((1, 3, 20, 20)).astype(np.float32)
            for stream, dtype in ((s, "<f4"), (half, "<f2")):
                data = x.astype(dtype)
                wanted = raw_of(d, "colour", "a.f%d" % (8 * data.itemsize), data.tobytes())
                for frame in (data, data[0], data.tobytes(), {"input": data}, x.astype(np.float64)):
                    equal(stream.run(frame).check()[0].tobytes(), wanted, dtype)
        with p.stream("colour", inline=True) as s:
            equal(s.run(x).check()[0].tobytes(), raw_of(d, "colour", "a.f32", x.tobytes()))


def formats_of_cameras_give_the_bits_of_the_protocol():
    with Served() as d, d.client() as p, pc.Connection(d.frames_path) as c:
        for k, (pixfmt, number, shape) in enumerate((("nv12", pc.NV12, (30, 18)), ("yuyv", pc.YUYV, (20, 18, 2)))):
            pixels = noise(shape, k)
            theirs = pc.Stream(c, k + 1, "colour", number, image=(18, 20)).infer(pixels.tobytes())
            equal(theirs.status, "ok")
            with p.stream("colour", pixfmt=pixfmt, size=(18, 20)) as s:
                equal((s.width, s.height, s.acquire().input.shape), (18, 20, shape))
                equal(s.run(pixels).check()[0].tobytes(), theirs.output, pixfmt)
                equal(s.run(pixels.tobytes()).check()[0].tobytes(), theirs.output, "bytes")


def several_inputs_and_outputs():
    with Served({"mixed": write_mixed}) as d, d.client() as p, p.stream("mixed", pixfmt="tensor") as s:
        equal([(t.name, t.dtype.str, t.shape) for t in s.inputs + s.outputs],
              [("x", "<f4", (5,)), ("n", "<i8", (3,)), ("y", "<f4", (5,)), ("k", "<i8", (3,))])
        x, n = np.arange(5, dtype=np.float32), np.array([1, -2, 3])
        for frame in ({"x": x, "n": n}, {"n": n, "x": x}, [x, n], (x, list(n))):
            a = s.run(frame)
            equal((a["y"].tolist(), a["k"].tolist(), a[1].tolist()), ((x + 16).tolist(), (2 * n).tolist(), [2, -4, 6]))
        f = s.acquire()
        f.inputs["x"][...], f.inputs["n"][...] = x, n
        f.tag, f.time_ns = "mine", 77
        s.submit(f)
        with s.next() as a:
            equal((a.tag, a.time_ns, a[0].tolist()), ("mine", 77, (x + 16).tolist()))
        raises(ValueError, "missing: n", s.run, {"x": x})
        raises(ValueError, "unknown: z; missing: none", s.run, {"x": x, "n": n, "z": n})
        raises(ValueError, "has 2 inputs (x, n), and 1 arrays", s.run, x)
        raises(ValueError, "the input x has the shape (5,), and this array has (4,)", s.run, [x[:4], n])
        raises(TypeError, "Cannot cast", s.run, [x, n + 0.5])
        equal(s.run([x, n]).number, 6, "what is refused takes no number and no slot")


def rows_are_those_that_are_valid():
    with Served({"boxes": write_boxes}) as d, d.client() as p, p.stream("boxes") as s:
        boxes = np.array([[[k, k, k + 1, k + 1] for k in range(6)]], np.float32)
        for good in (0, 2, 6):
            scores = np.array([[[0.9 if k < good else 0.1 for k in range(6)]]], np.float32)
            kept = s.run([boxes, scores])["kept"]
            equal(kept.shape, (good, 3))
            equal(sorted(kept[:, 2].tolist()), list(range(good)))


def top_is_that_of_pipectl():
    with Served() as d, d.client() as p:
        for model, pixfmt, pixels in (("digits", "gray8", heldout(3)[2]), ("colour", "rgb24", noise((20, 20, 3), 1))):
            path = d.path("a.pnm")
            with open(path, "wb") as f:
                f.write(pnm(pixels))
            wanted = d.pipectl("infer", "--model", model, "--top", "4", path)[0]["top"]
            with p.stream(model, pixfmt=pixfmt, size=pixels.shape[1::-1]) as s:
                got = s.run(pixels).top(4)
            equal([(t.index, t.label) for t in got], [(w["class"], w["label"]) for w in wanted])
            for t, w in zip(got, wanted):  # JSON has the shortest text of the same f32
                equal((t.score, t.probability), (np.float32(w["score"]), np.float32(w["probability"])))
        equal(s.labels, [], "of colour, which has none")


def policies_and_deadlines_are_obeyed():
    """On a daemon that stands still while frames come."""
    with Served() as d, d.client() as p:
        with p.stream("digits", pixfmt="gray8") as s:
            count = s.in_flight + 4  # more than the pipeline of this machine takes
        with p.stream("digits", pixfmt="gray8", policy="latest", slots=count) as s, \
                p.stream("digits", pixfmt="gray8", deadline_ms=1e-6) as late:
            x = noise((16, 16), 1)
            dropped, sent = [], 0
            while not dropped and sent < 100 * count:  # a busy machine may compute as fast as it reads
                d.signal(signal.SIGSTOP)
                for _ in range(count):
                    f = s.acquire()
                    f.input[...] = x
                    s.submit(f)
                raises(piped.TimedOut, "no answer within 0.05 s", s.next, 0.05)
                raises(piped.TimedOut, "there is no answer yet", s.next, 0)
                d.signal(signal.SIGCONT)
                answers = [s.next().copy() for _ in range(count)]
                equal([a.number for a in answers], list(range(sent + 1, sent + count + 1)))
                equal(answers[-1].status, piped.Status.OK)
                dropped = [a for a in answers if a.status == piped.Status.DROPPED]
                sent += count
            check(dropped, "nothing was dropped", answers)
            e = raises(piped.FrameError, "dropped", lambda: dropped[0].outputs)
            equal(e.status, piped.Status.DROPPED)
            a = late.run(x)
            equal((a.status, a.ok), (piped.Status.DEADLINE_EXCEEDED, False))
            check(a.reason, "no reason")
            f = s.acquire()
            f.input[...], f.deadline_ns = x, time.monotonic_ns() - 1
            equal(s.run(f).status, piped.Status.DEADLINE_EXCEEDED)


def arrays_are_valid_as_long_as_they_are_held():
    """They keep their slot, also after release(), close() and the end of the connection."""
    with Served(env=HEARTBEAT) as d:
        p = d.client()
        s = p.stream("digits", pixfmt="gray8", in_flight=2)
        equal((s.in_flight, s.slots), (2, 4))
        frames = [noise((16, 16), k) for k in range(40)]
        wanted = [a.copy()[0].tobytes() for a in s.infer(frames)]
        first = s.run(frames[0], copy=False)
        kept = first[0][0, 2:]
        first.release()
        raises(piped.Released, "was released", lambda: first.outputs)
        equal([a[0].tobytes() for a in s.infer(frames, in_flight=1)], wanted, "with one slot held")
        equal(kept.tobytes(), wanted[0][8:])
        raises(piped.SlotsHeld, "all 4 slots are held", lambda: [a.outputs for a in s.infer(frames)])
        raises(piped.SlotsHeld, "copy=True", lambda: list(s.infer(frames)))
        gc.collect()
        equal([a[0].tobytes() for a in list(s.infer(frames, copy=True))], wanted)
        frame = s.acquire()
        pixels = frame.input
        pixels[...] = frames[1]
        s.submit(frame)
        raises(ValueError, "read-only", pixels.__setitem__, 0, 0)
        raises(piped.Released, "was submitted", lambda: frame.input)
        raises(piped.Released, "was submitted", s.submit, frame)
        answer = s.next()
        equal(answer[0].tobytes(), wanted[1])
        filled = s.acquire()
        p.close()
        raises(piped.Closed, "closed", s.run, frames[0])
        raises(piped.Closed, "closed", s.submit, filled)
        raises(piped.Closed, "closed", p.stream, "digits")
        filled.input[...] = 1
        equal((kept.tobytes(), answer[0].tobytes()), (wanted[0][8:], wanted[1]), "after close")
        equal(len(d.status()["clients"]), 1, "the memory is still there")
        del kept, answer, filled, pixels
        gc.collect()
        d.wait_until(lambda: not d.status()["clients"])
        equal(d.status()["clients"], [], "the last array is gone")


def refusals_have_reasons():
    with Served() as d, d.client() as p:
        raises(piped.NoSuchModel, "no such model: digitz", p.stream, "digitz")
        raises(piped.NoSuchModel, "no such model: ?x", p.stream, "\u202ex")
        raises(ValueError, "'rgb' is not a pixfmt; there are tensor, rgb24", p.stream, "digits", pixfmt="rgb")
        raises(ValueError, "a picture of 99999x1 is too large", p.stream, "digits", pixfmt="gray8", size=(99999, 1))
        raises(ValueError, "'f12' is not f16 or f32", p.stream, "digits", output_dtype="f12")
        with p.stream("digits", pixfmt="gray8") as s:
            raises(ValueError, "a picture of 40x30 does not fit: the stream takes 16x16; open it with size=(40, 30)",
                   s.run, noise((30, 40), 1))
            raises(ValueError, "in gray8 has the shape (height, width), and this array has (16, 16, 3)", s.run,
                   noise((16, 16, 3), 1))
            raises(TypeError, "pixels are uint8, and this array has float64", s.run, np.zeros((16, 16)))
            raises(ValueError, "wrong size: the frame takes 256 bytes, input_bytes is 10", s.run, b"0123456789")
            raises(ValueError, "has 300 bytes, and the stream takes 256", s.run, bytes(300))
            raises(ValueError, "rows have 16 bytes, and stride is 15", s.acquire, stride=15)
            raises(ValueError, "does not fit into the stream's slots", s.acquire, (17, 16))
            raises(ValueError, "belongs to another stream", p.stream("digits").submit, s.acquire())
            for _ in range(3 * s.slots):  # none of these kept a slot
                equal(s.run(noise((16, 16), 1)).status, piped.Status.OK)
            raises(piped.Error, "no frame is outstanding", s.next)
        raises(piped.Closed, "the stream is closed", s.run, noise((16, 16), 1))
        check(p.server.startswith("piped "), p.server)
    raises(piped.NotReachable, "piped is not reachable at %s" % d.frames_path, d.client)
    raises(piped.NotReachable, "is not reachable", piped.control(d.control_path).status)


def what_is_empty_is_refused():
    """The slot holds the frame before it, which must not be answered again."""
    shapes = {"rgb24": (20, 20, 3), "bgr24": (20, 20, 3), "gray8": (20, 20), "nv12": (30, 20), "yuyv": (20, 20, 2)}
    with Served() as d, d.client() as p:
        for pixfmt, shape in shapes.items():
            with p.stream("colour", pixfmt=pixfmt, size=(20, 20), in_flight=1) as s:
                picture = noise(shape, 1)
                wanted = s.run(picture).check()[0].tobytes()
                for crop in (picture[9:9], picture[:, 4:4], picture[9:9, 4:4]):
                    raises(ValueError, "the picture is empty (", s.run, crop)
                for size in ((0, 0), (0, 20), (20, 0)):
                    raises(ValueError, "the picture is empty (%dx%d)" % size, s.acquire, size)
                    raises(ValueError, "the picture is empty (%dx%d)" % size, p.stream, "colour", pixfmt=pixfmt, size=size)
                for data in (b"", bytearray(), memoryview(b"")):
                    raises(ValueError, "the frame has 0 bytes", s.run, data)
                for _ in range(2 * s.slots):  # none of these kept a slot, or its size
                    equal(s.run(picture).check()[0].tobytes(), wanted, pixfmt)
        with p.stream("colour") as s:
            s.run(noise((1, 3, 20, 20), 1).astype(np.float32)).check()
            raises(ValueError, "the frame has 0 bytes", s.run, b"")


def slots_come_back_while_another_works():
    """What was given back while another thread had the connection is there for whoever needs it next."""
    with Served() as d, d.client() as p, p.stream("digits", pixfmt="gray8", in_flight=2) as s:
        x = noise((16, 16), 1)
        for _ in range(3 * s.slots):
            answer = s.run(x, copy=False)
            with p._guard.lock:
                del answer
        p._guard.settle = lambda: None  # the lock is never free just then
        for _ in range(3 * s.slots):
            s.run(x, copy=False).check()
        del p._guard.settle


def several_threads_share_a_stream():
    """Each gets its own answers, and none waits for ever."""
    with Served() as d, d.client() as p, p.stream("digits", pixfmt="gray8", in_flight=6) as s, \
            p.stream("colour", pixfmt="rgb24") as other:
        frames = [noise((16, 16), k) for k in range(60)]
        colours = [noise((20, 20, 3), k) for k in range(60)]
        wanted, wanted2 = ([a[0].tobytes() for a in st.infer(fs, copy=True)]
                           for st, fs in ((s, frames), (other, colours)))
        failed = []

        def work(stream, data, answers, turn):
            try:
                for k in range(turn, len(data), 3):
                    equal(stream.run(data[k]).check()[0].tobytes(), answers[k])
                equal([a[0].tobytes() for a in stream.infer(data, copy=True, in_flight=1)], answers)
            except Exception as e:
                failed.append(e)

        threads = [threading.Thread(target=work, args=(st, fs, w, k)) for k in range(3)
                   for st, fs, w in ((s, frames, wanted), (other, colours, wanted2))]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        check(not any(t.is_alive() for t in threads), "a thread waits for ever")
        equal(failed, [])


if __name__ == "__main__":
    main([bits_are_those_of_pipectl, formats_of_cameras_give_the_bits_of_the_protocol, several_inputs_and_outputs,
          rows_are_those_that_are_valid, top_is_that_of_pipectl, policies_and_deadlines_are_obeyed,
          arrays_are_valid_as_long_as_they_are_held,
          refusals_have_reasons, what_is_empty_is_refused, slots_come_back_while_another_works,
          several_threads_share_a_stream])
