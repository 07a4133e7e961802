#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Models that a user may read and the daemon may not: pipectl sends their files, and the daemon serves a copy. It is gone
after unload or a restart, or kept with --save. What is no file, too large, or changes meanwhile is refused."""
import array
import functools
import json
import os
import shutil
import socket
import subprocess
import threading

import pyclient as pc
import tiny_onnx
from daemon import BUILD, DIGITS, HEARTBEAT, LIMIT_S, PIPECTL, Daemon, VarlinkError, check, equal, main, until
from surroundings import as_user, lacking, tried

SERVER, ADMIN = 4000001, 4000002  # users that are in no database
LAYERS = [("conv", 8, 3), ("relu",), ("pool",), ("linear", 10)]
CONFIG = {"socket_mode": "0666", "admin_group": "games"}


def games():
    import grp
    return grp.getgrnam("games").gr_gid


def served_to_others(case):
    """Skipped where no other user may be played, or none can run the programs."""
    @functools.wraps(case)
    def run():
        return lacking("other users") or tried(*as_user(SERVER, PIPECTL, "--version")) or case()
    return run


class Served(Daemon):
    """A daemon of the user SERVER, and a private folder of ADMIN's with the model home/net.onnx."""

    def __init__(self, **more):
        super().__init__(config=dict(CONFIG, **more), env=HEARTBEAT, wrapper=as_user(SERVER))
        self.home = os.path.join(self.temp, "home")
        self.models = {"digits": os.path.join(self.temp, "digits.onnx")}
        shutil.copy(DIGITS, self.temp)
        for path, mode in ((self.temp, 0o755), (self.notify_path, 0o666), (self.config_path, 0o644)):
            os.chmod(path, mode)
        for folder in (self.runtime_dir, self.state_dir):
            os.chown(folder, SERVER, SERVER)
        os.mkdir(self.home, 0o700)
        write_model(self.home)
        subprocess.run(["chown", "-R", "%d:%d" % (ADMIN, ADMIN), self.home], check=True)

    def start(self, wait=True):
        super().start(wait)
        os.chmod(self.runtime_dir, 0o755)
        return self

    def as_admin(self, *args, expect=0):
        r = subprocess.run(as_user(ADMIN, PIPECTL, "--socket", self.control_path, *args, gid=games()),
                           capture_output=True, text=True, timeout=LIMIT_S, check=False)
        equal(r.returncode, expect, r.stdout + r.stderr)
        return r.stdout + r.stderr

    def copies(self, place):
        """The folders of copies in the state directory."""
        folder = os.path.join(self.state_dir, place)
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def gone(self, place):
        check(self.wait_until(lambda: not self.copies(place)), "still there:", self.copies(place))

    def answer(self, name):
        with pc.Connection(self.frames_path) as c:
            pixels = array.array("f", [((i * 37) % 101) / 50 - 1 for i in range(3 * 16 * 16)]).tobytes()
            r = pc.Stream(c, model=name).infer(pixels)
            equal(r.status, "ok")
            return bytes(r.output)


def write_text(folder, name, text):
    os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        f.write(text)


def write_model(folder, name="net"):
    """A model with a sidecar, and with its weights in a folder below it."""
    path = os.path.join(folder, name + ".onnx")
    tiny_onnx.write(path, LAYERS, size=16, beside="weights/%s.bin" % name)
    write_text(folder, name + ".sidecar.json", json.dumps({"preprocess": {"mean": [0], "std": [255]},
                                                           "labels": ["label %d" % i for i in range(10)]}))
    return path


def model(d, name):
    return next(m for m in d.call("Models")["models"] if m["name"] == name)


# ---- what pipectl does ----

@served_to_others
def a_private_model_is_served_from_a_copy():
    with Served() as d:
        private = os.path.join(d.home, "net.onnx")
        for mode in (0o700, 0o755):  # the folder is closed; the file is
            os.chmod(d.home, mode)
            os.chmod(private, 0o600)
            try:
                d.call("Load", {"name": "net", "path": private})
                check(False, "the daemon can read", private)
            except VarlinkError as e:
                check(e.parameters["why"].startswith(private + ": Permission denied; the service sees no /home"), e)
                check(e.parameters["why"].endswith("or pipectl models load sends it"), e)
        os.chmod(d.home, 0o700)
        text = d.as_admin("models", "load", "net", private)
        check("loaded from a copy, since the daemon may not read %s; the copy is kept until unload or a restart" % private
              in text and "does not reach the copy, not by a reload either: unload net and load it again\n" in text, text)
        folder = d.copies("loaded")
        equal(len(folder), 1)
        copy = model(d, "net")
        equal(copy["path"], os.path.join(d.state_dir, "loaded", folder[0], "net.onnx"))
        # the same bytes, by path: one identity, the same answers
        public = os.path.join(d.temp, "public")
        os.mkdir(public)
        path = write_model(public)
        equal(d.call("Load", {"name": "same", "path": path})["copied"], False)
        equal(model(d, "same")["hash"], copy["hash"])
        equal(d.answer("net"), d.answer("same"))
        equal(copy["warnings"], [], "without its sidecar it warns")
        # it is loaded again from the copy, wherever the user's file is now
        shutil.rmtree(d.home)
        d.as_admin("optimise", "--model", "net")
        d.answer("net")
        equal(d.copies("loaded"), folder)
        d.as_admin("models", "unload", "net")
        d.gone("loaded")
        equal(d.copies("saved"), [])


@served_to_others
def what_the_sidecar_names_is_sent_along():
    """Labels and an alphabet in files of their own, with a byte order mark before the sidecar; not what is no such file."""
    with Served() as d:
        private = os.path.join(d.home, "net.onnx")
        write_text(d.home, "net.sidecar.json", "\ufeff" + json.dumps({
            "labels_file": "./lists/labels.txt", "output": {"decode": "ctc", "alphabet_file": "letters.txt"}}))
        write_text(d.home, "lists/labels.txt", "one\ntwo\n")
        write_text(d.home, "letters.txt", "".join("%s\n" % c for c in "abcdefghi"))
        subprocess.run(["chown", "-R", "%d:%d" % (ADMIN, ADMIN), d.home], check=True)
        d.as_admin("models", "load", "net", private, "--save")
        shutil.rmtree(d.home)
        for _ in range(2):
            with pc.Connection(d.frames_path, features=pc.FEATURE_DESCRIBED) as c:
                c.send(pc.OPEN, pc.open_payload("net"), stream=1)
                said = json.loads(c.expect(pc.DESCRIBED)[1])
            equal((said["labels"], said["output"]["alphabet"]), (["one", "two"], list("abcdefghi")))
            d.as_admin("optimise", "--model", "net")  # loads the copy again


def a_missing_file_of_the_sidecar_is_named():
    with Daemon(config=CONFIG) as d:
        path = write_model(d.temp)
        for named, why in (("gone.txt", "gone.txt: No such file"), ("../out.txt", "must be a path below the model's folder"),
                           (7, None), ("", "must be a path below")):
            write_text(d.temp, "net.sidecar.json", json.dumps({"labels_file": named}))
            r = subprocess.run([PIPECTL, "--socket", d.control_path, "models", "load", "net", path], capture_output=True,
                               text=True, timeout=LIMIT_S, check=False)
            equal(r.returncode, 1, r.stderr)
            check("key 'labels_file'" in r.stderr, r.stderr)
            equal("were not sent along" in r.stderr, why is not None, r.stderr)
            equal(r.stderr.count(why or "key 'labels_file'"), 2 if why else 1, r.stderr)


@served_to_others
def a_copy_that_is_not_saved_ends_with_the_daemon():
    d = Served()
    try:
        d.start()
        d.as_admin("models", "load", "net", os.path.join(d.home, "net.onnx"))
        equal(len(d.copies("loaded")), 1)
        d.stop()
        equal(d.copies("loaded"), [])
        d.start()
        equal([m["name"] for m in d.call("Models")["models"]], ["digits"])
        d.as_admin("models", "load", "net", os.path.join(d.home, "net.onnx"))
        d.kill()
        equal(len(d.copies("loaded")), 1, "what a killed daemon leaves")
        d.start()
        equal(d.copies("loaded"), [])
        d.stop()
    finally:
        d.cleanup()


@served_to_others
def a_saved_copy_outlives_restarts():
    d = Served()
    try:
        d.start()
        text = d.as_admin("models", "load", "net", os.path.join(d.home, "net.onnx"), "--save")
        check("kept over restarts, until unload --save" in text, text)
        before = d.answer("net")
        equal((len(d.copies("saved")), d.copies("loaded")), (1, []))
        shutil.rmtree(d.home)
        d.stop()
        d.start()
        equal(d.answer("net"), before)
        d.call("Reload")
        d.wait_notify(lambda m: m.get("READY") == "1")
        equal(d.answer("net"), before)
        d.as_admin("models", "unload", "net", "--save")
        d.gone("saved")
        d.stop()
        d.start()
        equal([m["name"] for m in d.call("Models")["models"]], ["digits"])
        d.stop()
    finally:
        d.cleanup()


@served_to_others
def a_replaced_saved_copy_goes_at_the_next_start():
    d = Served()
    try:
        d.start()
        for _ in range(2):
            d.as_admin("models", "load", "net", os.path.join(d.home, "net.onnx"), "--save")
            path = model(d, "net")["path"]
            d.as_admin("models", "unload", "net")
        equal(len(d.copies("saved")), 2)
        d.stop()
        d.start()
        equal(model(d, "net")["path"], path)
        equal(d.copies("saved"), [path.split("/")[-2]])
        d.stop()
    finally:
        d.cleanup()


def a_readable_model_is_not_copied():
    with Daemon(config=CONFIG) as d:
        path = write_model(d.temp)
        check("copy" not in d.pipectl("models", "load", "net", path, as_json=False))
        equal(model(d, "net")["path"], path)
        check(not os.path.exists(os.path.join(d.state_dir, "loaded")))
        # a link elsewhere, with its files beside the target
        link = os.path.join(d.runtime_dir, "net.onnx")
        os.symlink(path, link)
        d.pipectl("models", "load", "link", link)
        equal(model(d, "link")["hash"], model(d, "net")["hash"])


def a_missing_file_is_named():
    with Daemon(config=CONFIG) as d:
        path = write_model(d.temp)
        os.remove(os.path.join(d.temp, "weights", "net.bin"))
        r = subprocess.run([PIPECTL, "--socket", d.control_path, "models", "load", "net", path], capture_output=True,
                           text=True, timeout=LIMIT_S, check=False)
        check("weights/net.bin: No such file" in r.stderr and "were not sent along" in r.stderr, r.stderr)
        # a name that leads out of the folder is never sent
        tiny_onnx.write(os.path.join(d.temp, "out.onnx"), LAYERS, size=16, beside="../secret.bin")
        r = subprocess.run([PIPECTL, "--socket", d.control_path, "models", "load", "out", os.path.join(d.temp, "out.onnx")],
                           capture_output=True, text=True, timeout=LIMIT_S, check=False)
        os.remove(os.path.join(os.path.dirname(d.temp), "secret.bin"))
        check("../secret.bin: must be a path below the model's folder" in r.stderr, r.stderr)
        # a long name leaves room for the reason
        tiny_onnx.write(os.path.join(d.temp, "long.onnx"), LAYERS, size=16, beside="n" * 250)
        os.remove(os.path.join(d.temp, "n" * 250))
        r = subprocess.run([PIPECTL, "--socket", d.control_path, "models", "load", "long", os.path.join(d.temp, "long.onnx")],
                           capture_output=True, text=True, timeout=LIMIT_S, check=False)
        equal(r.stderr.count("nnn...nnn"), r.stderr.count("n: No such file"), r.stderr)
        equal(r.stderr.count("n: No such file"), 2, r.stderr)


# ---- what others may send ----

def load(d, fds, files, path="/nowhere/x.onnx", **more):
    """Calls Load with descriptors. Return: why it is refused; "" if it is not."""
    message = json.dumps({"method": "io.piped.Load", "parameters": dict(name="x", path=path, files=files, **more)}).encode()
    with d.connect() as v:
        socket.send_fds(v.sock, [message[:1]], fds)
        v.sock.sendall(message[1:] + b"\0")
        try:
            v.receive()
            return ""
        except VarlinkError as e:
            return e.parameters.get("why", e.error)


def kept_files(d):
    folder = os.path.join(d.state_dir, "loaded")
    return os.listdir(folder) if os.path.isdir(folder) else []


def still_serves(d):
    """And files of a model that is unloaded go, a moment later."""
    with pc.Connection(d.frames_path) as c:
        equal(pc.Stream(c, pixfmt=pc.GRAY8, image=(8, 8)).infer(bytes(64)).status, "ok")
    until(lambda: not kept_files(d), "the end of its files")


def bad_names_are_refused():
    with Daemon(config=CONFIG) as d:
        with open(DIGITS, "rb") as f:
            fd = f.fileno()
            for name in ("../x", "/x", "a/../../b", "", "a/..", ".", "..", "x" * 1024, "yy/" * 400, 7, None):
                why = load(d, [fd, fd], ["x.onnx", name])
                check("files" in why, repr(name), why)
            for files, fds in ((["y.onnx"], [fd]), (["a/x.onnx"], [fd]), (["x.onnx"], []), (["x.onnx", "y"], [fd]),
                               (["x.onnx"] * 65, [fd] * 65), (["x.onnx"] * 65, [fd])):
                why = load(d, fds, files)
                check("files" in why, files[:2], why)
            # twice the same name, a file where a folder is needed
            check("File exists" in load(d, [fd, fd], ["x.onnx", "x.onnx"]))
            check("File exists" in load(d, [fd, fd], ["x.onnx", "./x.onnx"]))
            check("Not a directory" in load(d, [fd, fd], ["x.onnx", "x.onnx/y"]))
            # names in another form
            for name in ("a//b", "a/./b", "a/", "./b", "a/../b"):
                equal(load(d, [fd, fd], ["./x.onnx", name]), "", name)
                d.call("Unload", {"name": "x"})
        still_serves(d)


def only_whole_files_are_taken():
    with Daemon(config=dict(CONFIG, limits={"model_weight_mib": 1})) as d:
        def refused(fd, *words):
            why = load(d, [fd], ["x.onnx"])
            os.close(fd)
            check(all(w in why for w in words), why, words)

        read, write = os.pipe()
        refused(read, "not a regular file")
        os.close(write)
        refused(os.open(d.temp, os.O_RDONLY), "not a regular file")
        refused(os.open("/dev/zero", os.O_RDONLY), "not a regular file")
        refused(socket.socket().detach(), "not a regular file")
        refused(os.open(DIGITS, os.O_PATH), "not opened for reading")
        path = os.path.join(d.temp, "x")
        with open(path, "wb"):
            pass
        refused(os.open(path, os.O_WRONLY), "not opened for reading")
        refused(os.open(path, os.O_RDONLY), "empty")
        os.truncate(path, 1 << 38)  # all of it a hole
        refused(os.open(path, os.O_RDONLY), "limits.model_weight_mib")
        os.truncate(path, 1 << 27)
        refused(os.open(path, os.O_RDONLY), "x.onnx")
        two = [os.open(path, os.O_RDONLY) for _ in range(3)]
        check("limits.model_weight_mib" in load(d, two, ["x.onnx", "a", "b"]), "together they are too large")
        for fd in two:
            os.close(fd)
        for name in ("maps", "mem", "pagemap"):  # files without a size
            refused(os.open("/proc/self/" + name, os.O_RDONLY), "x.onnx")
        still_serves(d)


def a_file_that_changes_kills_nobody():
    with Daemon(config=CONFIG) as d:
        path = os.path.join(d.temp, "changing.onnx")
        with open(DIGITS, "rb") as f:
            digits = f.read()
        with open(path, "wb") as f:
            f.write(digits * 200)
        changes, ends = threading.Event(), threading.Event()

        def change():
            while not ends.is_set():
                for part in (100, 200):  # never empty, so that each copy takes longer than a change
                    os.truncate(path, len(digits) * part)
                changes.set()

        changer = threading.Thread(target=change)
        changer.start()
        try:
            whys = []
            check(changes.wait(LIMIT_S), "the file could not be truncated")  # the first time may wait for a disk
            for _ in range(40):
                with open(path, "rb") as f:
                    whys.append(load(d, [f.fileno()], ["x.onnx"]))
        finally:
            ends.set()
            changer.join()
        check(all(whys), "zeros were loaded as a model", whys)
        check(any("changed while it was copied" in w for w in whys), "no change was noticed", set(whys))
        still_serves(d)
        # memory that its owner truncates once it serves
        fd = os.memfd_create("model")
        os.write(fd, digits)
        equal(load(d, [fd], ["x.onnx"]), "")
        os.ftruncate(fd, 0)
        d.pipectl("optimise", "--model", "x")
        with pc.Connection(d.frames_path) as c:
            equal(pc.Stream(c, model="x", pixfmt=pc.GRAY8, image=(8, 8)).infer(bytes(64)).status, "ok")
        d.call("Unload", {"name": "x"})


def no_state_directory_and_a_second_daemon_copy_nothing():
    with Daemon(config=CONFIG) as d, open(DIGITS, "rb") as f:
        with Daemon(config=CONFIG, state_dir=d.state_dir) as second:
            why = load(second, [f.fileno()], ["x.onnx"])
            check("another daemon keeps the state directory" in why, why)
            check(second.log().count("cannot serve model x") == 1, second.log())
        equal(load(d, [f.fileno()], ["x.onnx"]), "")
        d.call("Unload", {"name": "x"})


@served_to_others
def who_may_change_nothing_gets_one_descriptor_in():
    with Served() as d:
        code = ("import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
                "socket.send_fds(s, [b'{'], [0] * 60); s.sendall(b'\"method\":\"io.piped.Status\"}' + bytes(1));"
                "print(len(s.recv(1)), flush=True); sys.stdin.read()")
        with subprocess.Popen(as_user(ADMIN, "/usr/bin/python3", "-c", code, d.control_path), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as other:
            equal(other.stdout.readline().strip(), "1")
            sent, fds = os.readlink("/proc/%d/fd/0" % other.pid), "/proc/%d/fd" % d.process.pid
            equal([os.readlink(os.path.join(fds, f)) for f in os.listdir(fds)].count(sent), 1)
            other.stdin.close()


if __name__ == "__main__":
    os.environ.setdefault("PIPED_BUILD", BUILD)
    main([a_private_model_is_served_from_a_copy, what_the_sidecar_names_is_sent_along,
          a_missing_file_of_the_sidecar_is_named, a_copy_that_is_not_saved_ends_with_the_daemon,
          a_saved_copy_outlives_restarts, a_replaced_saved_copy_goes_at_the_next_start, a_readable_model_is_not_copied,
          a_missing_file_is_named, bad_names_are_refused, only_whole_files_are_taken, a_file_that_changes_kills_nobody,
          no_state_directory_and_a_second_daemon_copy_nothing, who_may_change_nothing_gets_one_descriptor_in])
