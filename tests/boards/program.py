# SPDX-License-Identifier: Apache-2.0
"""A process of a fleet that logs to a file, and whose lines a test waits for."""
import ctypes
import os
import signal
import subprocess
import threading

from cases import Failure, check

SLOW = float(os.environ.get("PIPED_TEST_SLOWDOWN", "1"))
LIMIT_S = 120 * SLOW  # of a wait for what comes sooner or later, also beside a load
TAIL = 40  # lines of a log
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def dies_with_parent():
    """In a child: it is killed when the test is."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Program:
    """A process that logs. Its lines are kept, and can be waited for: each is met once."""

    def __init__(self, command, log, prepare=dies_with_parent, env=None):
        self.log_path, self.lines, self.met, self.ended = log, [], 0, False
        self.news = threading.Condition()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, preexec_fn=prepare, env=env)
        self.pid = self.process.pid
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with open(self.log_path, "ab") as log:
            for line in self.process.stdout:
                log.write(line)
                log.flush()
                with self.news:
                    self.lines.append(line.decode(errors="replace").rstrip("\n"))
                    self.news.notify_all()
        with self.news:
            self.ended = True
            self.news.notify_all()

    def next_of(self, words):
        while self.met < len(self.lines):
            self.met += 1
            if words in self.lines[self.met - 1]:
                return self.lines[self.met - 1]
        return None

    def wait(self, words, seconds=20):
        """Return: the next line with these words; those before it count as met."""
        with self.news:
            line = [None]

            def there():
                line[0] = line[0] or self.next_of(words)
                return line[0] or self.ended
            self.news.wait_for(there, seconds * SLOW)
        check(line[0], "no line with %r within %.0f s; it said:\n%s" % (words, seconds * SLOW, self.said()))
        return line[0]

    def wait_for(self, good, seconds=20):
        """Until good(), asked after each line."""
        with self.news:
            there = self.news.wait_for(lambda: good() or self.ended, seconds * SLOW) and good()
        check(there, "not within %.0f s; it said:\n%s" % (seconds * SLOW, self.said()))

    def count(self, words):
        with self.news:
            return sum(words in line for line in self.lines)

    def said(self):
        return "\n".join(self.lines[-TAIL:])

    def tell(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def signal(self, number):
        if self.process.poll() is None:
            os.kill(self.pid, number)

    def wait_exit(self, seconds=30):
        """Return: its exit code."""
        try:
            code = self.process.wait(seconds * SLOW)
        except subprocess.TimeoutExpired:
            raise Failure("it does not end; it said:\n" + self.said()) from None
        self.close()
        return code

    def stop(self):
        self.signal(signal.SIGTERM)
        return self.wait_exit()

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()
        self.close()

    def close(self):
        self.reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except OSError:
                pass
