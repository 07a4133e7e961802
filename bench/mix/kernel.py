# SPDX-License-Identifier: Apache-2.0
"""What the kernel takes from a daemon while it serves: for how long its threads could run and had to wait for a core."""
import bisect
import os
import threading
import time

LOOK_S = 0.01
FIND_EVERY = 10  # looks


class Looks(threading.Thread):
    """Reads how long threads of a process have waited, all the while."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.folder, self.files, self.waits = '/proc/%d/task' % pid, {}, 0
        self.at_ns, self.waited_ns, self.over = [], [], threading.Event()
        self.look()
        self.start()

    def find(self):
        """Threads that are new: those of another plan."""
        for task in set(os.listdir(self.folder)) - set(self.files):
            try:
                self.files[task] = [os.open(os.path.join(self.folder, task, 'schedstat'), os.O_RDONLY), None]
            except OSError:
                pass  # it has ended

    def look(self):
        if len(self.at_ns) % FIND_EVERY == 0:
            self.find()
        for task, (fd, before) in list(self.files.items()):
            try:
                now = int(os.pread(fd, 100, 0).split()[1])
            except (OSError, IndexError):
                os.close(fd)
                del self.files[task]
                continue
            self.waits += now - (now if before is None else before)
            self.files[task][1] = now
        self.at_ns.append(time.monotonic_ns())
        self.waited_ns.append(self.waits)

    def run(self):
        while not self.over.wait(LOOK_S):
            self.look()

    def end(self):
        self.over.set()
        self.join()
        self.look()
        for fd, _ in self.files.values():
            os.close(fd)

    def taken_ms(self, first_ns, last_ns):
        """Of what was taken between these moments, at most: looks around them count in full."""
        before = max(0, bisect.bisect_right(self.at_ns, first_ns) - 1)
        after = min(len(self.at_ns) - 1, bisect.bisect_left(self.at_ns, last_ns))
        return (self.waited_ns[after] - self.waited_ns[before]) / 1e6

    def all_ms(self):
        return (self.waited_ns[-1] - self.waited_ns[0]) / 1e6


def stolen_ms():
    """What the machine's host took so far."""
    with open('/proc/stat', encoding='ascii') as f:
        return int(f.readline().split()[8]) * 1e3 / os.sysconf('SC_CLK_TCK')
