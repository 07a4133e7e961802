# SPDX-License-Identifier: Apache-2.0
"""A process whose lines a test waits for."""
import ctypes
import os
import signal
import subprocess
import threading

from cases import Failure, check
from wait import RARELY_S, until

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
        self.log_path, self.lines, self.met, self.over = log, [], 0, False
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
            self.over = True
            self.news.notify_all()

    @staticmethod
    def fits(line, words):
        return words in line

    def next_of(self, words):
        while self.met < len(self.lines):
            self.met += 1
            if self.fits(self.lines[self.met - 1], words):
                return self.lines[self.met - 1]
        return None

    def wait(self, words, seconds=20):
        """Return: the next line with these words; those before it count as met."""
        with self.news:
            line = [None]

            def there():
                line[0] = line[0] or self.next_of(words)
                return line[0] or self.over
            self.news.wait_for(there, seconds * SLOW)
        check(line[0], "no line with %r within %.0f s; it said:\n%s" % (words, seconds * SLOW, self.said()))
        return line[0]

    def wait_for(self, good, seconds=20):
        """Until good(), asked after each line."""
        with self.news:
            there = self.news.wait_for(lambda: good() or self.over, seconds * SLOW) and good()
        check(there, "not within %.0f s; it said:\n%s" % (seconds * SLOW, self.said()))

    def wait_news(self, seconds):
        """Until its next line, or so long."""
        with self.news:
            self.news.wait(min(seconds, RARELY_S))

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

    def end(self):
        """Its input ends. Return: its exit code."""
        self.process.stdin.close()
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


class Node(Program):
    """A program that tells in lines what happens, and does what it is told in lines. It is waited for how a line begins."""

    def __init__(self, command, env=None):
        super().__init__(command, os.devnull, None, env)

    @staticmethod
    def fits(line, starts):
        return line.startswith(starts)

    def said(self):
        return "\n".join(self.lines)

    def wait_all(self, lines, seconds):
        """Waits for several lines in any order."""
        self.wait_for(lambda: all(line in self.lines for line in lines), seconds)

    def tell_until(self, line, good, seconds):
        """Asks again and again, until the answer is good."""
        def answer():
            self.tell(line)
            said = self.wait(line.split()[0], seconds)
            return good(said) and said
        return until(answer, "a good answer to", line, self.said, limit_s=seconds, pause=self.wait_news)

    def stat(self, what):
        """A number of "stats b"."""
        self.tell("stats b")
        return int(self.wait("stats").split(what + "=")[1].split()[0])
