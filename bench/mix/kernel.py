# SPDX-License-Identifier: Apache-2.0
"""What the kernel takes from a daemon while it serves: for how long its threads could run and had to wait for a core."""
import bisect
import os
import threading
import time

LOOK_S = 0.01


class Looks(threading.Thread):
    """Reads how long threads of a process have waited, all the while; the threads of the moment at which it begins."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        folder = '/proc/%d/task' % pid
        self.files = [os.open(os.path.join(folder, task, 'schedstat'), os.O_RDONLY) for task in os.listdir(folder)]
        self.at_ns, self.waited_ns, self.over = [], [], threading.Event()
        self.look()
        self.start()

    def look(self):
        waited = 0
        for fd in self.files:
            try:
                waited += int(os.pread(fd, 100, 0).split()[1])
            except OSError:
                pass  # it has ended
        self.at_ns.append(time.monotonic_ns())
        self.waited_ns.append(waited)

    def run(self):
        while not self.over.wait(LOOK_S):
            self.look()

    def end(self):
        self.over.set()
        self.join()
        self.look()
        for fd in self.files:
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
