# SPDX-License-Identifier: Apache-2.0
"""A program in a pseudo terminal, and the screen that it draws there: enough of xterm for ncurses.

    with Terminal(["pipectl", "top"], rows=24, columns=80) as t:
        t.wait(lambda text: "quit" in text)
        t.send("q")
        t.wait_end()
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import unicodedata

from daemon import check
from wait import until

SEQUENCE = re.compile("\x1b(?:\\[([?>]?)([0-9;]*)([@-~])|[()][AB012]|[=>78M])")
BEGUN = re.compile("\x1b(?:\\[[?>]?[0-9;]*|[()])?$")


class Terminal:
    def __init__(self, command, rows=24, columns=80, env=None):
        self.rows, self.columns = rows, columns
        self.bytes = b""  # all that came
        self.rest = b""
        self.pending = ""
        self.row = self.column = 0
        self.unknown = []
        self.cursor_shown, self.alternate = True, False
        self.cells = []
        self.clear()
        self.status = None
        self.master, self.slave = pty.openpty()
        self.resize_only(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for fd in (0, 1, 2):
                os.dup2(self.slave, fd)
            os.closerange(3, 256)
            os.execvpe(command[0], command, {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **(env or {})})

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)
        os.close(self.slave)

    # what the test does

    def send(self, text):
        os.write(self.master, text.encode())

    def resize_only(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        """The size of the window; the kernel sends SIGWINCH."""
        self.rows, self.columns = rows, columns
        self.clear()
        self.keep_inside()
        self.resize_only(rows, columns)

    def wait(self, wanted):
        """Reads until wanted(text of the screen) is true; returns the text."""
        until(lambda: wanted(self.text()), "on the screen:\n", self.text, pause=lambda left_s: self.read(min(left_s, 0.2)))
        return self.text()

    def wait_end(self):
        """Reads until the program has ended. Return: its exit code, negative for a signal."""
        def ended():
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            return pid
        if self.status is None:
            until(ended, "an end of the program:\n", self.text, pause=lambda left_s: self.read(min(left_s, 0.05)))
        while self.read(0):
            pass
        return self.status

    def restored(self):
        return termios.tcgetattr(self.slave) == self.before and self.cursor_shown and not self.alternate

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.cells)

    # what the terminal does

    def read(self, wait_s):
        ready, _, _ = select.select([self.master], [], [], wait_s)
        if not ready:
            return False
        data = os.read(self.master, 65536)
        self.bytes += data
        self.take(data)
        return True

    def take(self, data):
        data = self.rest + data
        for cut in range(4):
            try:
                text = data[:len(data) - cut].decode()
                break
            except UnicodeDecodeError:
                check(cut < 3, "not UTF-8:", data)
        self.rest = data[len(data) - cut:] if cut else b""
        text = self.pending + text
        begun = BEGUN.search(text)
        self.pending = begun.group() if begun else ""
        text = text[:len(text) - len(self.pending)]
        at = 0
        while at < len(text):
            m = SEQUENCE.match(text, at)
            if m:
                at = m.end()
                if m.group(3):
                    self.control(m.group(1), m.group(2), m.group(3))
                elif m.group() == "\x1bM":  # up, or scroll down
                    self.control("", "1", "T" if self.row == self.margins[0] else "A")
            else:
                self.character(text[at])
                at += 1

    def clear(self):
        self.margins = (0, self.rows - 1)
        self.cells = [[" "] * self.columns for _ in range(self.rows)]

    def character(self, c):
        if c == "\r":
            self.column = 0
        elif c == "\n":
            if self.row == self.margins[1]:
                self.control("", "1", "S")
            else:
                self.row = min(self.row + 1, self.rows - 1)
        elif c == "\b":
            self.column = max(self.column - 1, 0)
        elif ord(c) < 32 or 0x7f <= ord(c) < 0xa0:
            self.unknown.append(repr(c))
        else:
            wide = 2 if unicodedata.east_asian_width(c) in "WF" else 1
            if self.row < self.rows and self.column + wide <= self.columns:
                self.cells[self.row][self.column] = c
                if wide == 2:
                    self.cells[self.row][self.column + 1] = ""
            self.column += wide
            self.last = c

    def keep_inside(self):
        """What was written for a larger screen may still come."""
        self.row = max(0, min(self.row, self.rows - 1))
        self.column = max(0, min(self.column, self.columns - 1))

    def control(self, private, numbers, what):
        self.obey(private, numbers, what)
        self.keep_inside()

    def obey(self, private, numbers, what):
        n = [int(x or 0) for x in numbers.split(";")]
        one = max(n[0], 1)
        if private:
            if private == "?" and 25 in n:
                self.cursor_shown = what == "h"
            if private == "?" and 1049 in n:
                self.alternate = what == "h"
        elif what == "H":
            self.row, self.column = one - 1, max(n[1] if len(n) > 1 else 1, 1) - 1
        elif what == "d":
            self.row = one - 1
        elif what == "G":
            self.column = one - 1
        elif what in "ABCD":
            self.row += {"A": -one, "B": one}.get(what, 0)
            self.column += {"C": one, "D": -one}.get(what, 0)
        elif what == "b":
            for _ in range(one):
                self.character(self.last)
        elif what == "J":
            for row in range(self.row + 1 if n[0] == 0 else 0, self.rows):
                self.cells[row] = [" "] * self.columns
            self.control("", "0", "K")
        elif what in "KX":
            first, last = {0: (self.column, self.columns), 1: (0, self.column + 1), 2: (0, self.columns)}[n[0]] \
                if what == "K" else (self.column, min(self.column + one, self.columns))
            self.cells[self.row][first:last] = [" "] * (last - first)
        elif what in "LMST":  # lines are inserted or deleted, within the margins
            first, last = (self.row if what in "LM" else self.margins[0]), min(self.margins[1], self.rows - 1)
            for _ in range(one):
                self.cells.insert(first if what in "LT" else last + 1, [" "] * self.columns)
                self.cells.pop(last + 1 if what in "LT" else first)
        elif what == "r":
            last = min(n[1] if len(n) > 1 and n[1] else self.rows, self.rows) - 1
            self.margins = (min(one - 1, last), last)
            self.row = self.column = 0
        elif what in "P@":
            self.keep_inside()
            row = self.cells[self.row]
            for _ in range(one):
                if what == "P":
                    row.pop(self.column)
                    row.append(" ")
                else:
                    row.insert(self.column, " ")
                    row.pop()
        elif what not in "mhlt":
            self.unknown.append("\\e[%s%s" % (numbers, what))
