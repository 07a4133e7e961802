# SPDX-License-Identifier: Apache-2.0
"""Listening sockets that outlive the daemon, as the socket units of systemd hold them: each start gets them again."""
import os
import select
import socket
import sys
import threading

ACTIVATOR = """
import os, sys
fds = [int(f) for f in sys.argv[1].split(",")]
high = [os.dup2(fd, 200 + i, True) for i, fd in enumerate(fds)]
for i, fd in enumerate(high):
    os.dup2(fd, 3 + i, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(fds)), LISTEN_FDNAMES=sys.argv[2])
os.execv(sys.argv[3], sys.argv[3:])
"""


def passing(fds, names):
    """Return: a command before a daemon's, which passes it these descriptors, named "NAME:NAME"."""
    return [sys.executable, "-c", ACTIVATOR, ",".join(map(str, fds)), names]


class SocketUnits:
    """The sockets of one Daemon that is not started yet, until the block ends."""

    def __init__(self, d):
        self.sockets = []
        for path in (d.frames_path, d.control_path):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            s.bind(path)
            s.listen(128)
            self.sockets.append(s)
        fds = [s.fileno() for s in self.sockets]
        d.pass_fds, d.wrapper = tuple(fds), passing(fds, "frames:control")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for s in self.sockets:
            path = s.getsockname()
            s.close()
            if os.path.exists(path):
                os.unlink(path)


class Manager(SocketUnits):
    """Starts the daemon when a client waits at its sockets and none runs, as systemd does. `starts`: how often."""

    def __init__(self, d):
        super().__init__(d)
        self.d, self.starts, self.ends = d, 0, os.pipe()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while True:
            ready = select.select(self.sockets + [self.ends[0]], [], [])[0]
            if self.ends[0] in ready:
                return
            self.starts += 1
            self.d.start(wait=False)
            self.d.process.wait()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        os.write(self.ends[1], b"1")
        if self.d.process and self.d.process.poll() is None:
            self.d.process.terminate()
        self.thread.join()
        for fd in self.ends:
            os.close(fd)
        super().__exit__(*exc)
        self.d.cleanup()
