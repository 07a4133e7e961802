# SPDX-License-Identifier: Apache-2.0
"""What piped-http is attacked with, in tests and in bench/attacks.py: pictures of few bytes, and slow connections."""
import struct
import subprocess
import sys
import zlib

from daemon import equal

PNG = {"Content-Type": "image/png"}
# Dials until every place is its own, says so, and dials again whenever one is closed. It says nothing, or drips.
SLOW = r"""
import os, select, socket, sys
uid, count, path, body = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
"".encode("idna")  # loaded while its file can be read
os.setgroups([]); os.setgid(uid); os.setuid(uid)
def dial():
    if path.startswith("/"):
        s = socket.socket(socket.AF_UNIX)
        s.connect(path)
    else:
        s = socket.create_connection(path.rsplit(":", 1))
    head = b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\n"
    s.sendall(head + (b"Content-Length: %d\r\n\r\n" % (body + 1) + bytes(body) if body else b"X: "))
    s.setblocking(False)
    return s
held, told = [], False
while True:
    while len(held) < count:
        try:
            held.append(dial())
        except OSError:
            break
    if not told:
        print("held", flush=True)
        told = True
    for s in select.select(held, [], [], 0.005)[0]:
        s.close()
        held.remove(s)
"""



def png(width, height, channels):
    """A black picture, of few bytes."""
    row = b"\0" * (1 + width * channels)
    pack = zlib.compressobj(9)
    data = b"".join(pack.compress(row * 16) for _ in range(height // 16)) + pack.compress(row * (height % 16)) + pack.flush()

    def part(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", data) + part(b"IEND", b"")


def memory(h, key):
    """Of piped-http, in bytes: VmRSS, VmHWM."""
    with open("/proc/%d/status" % h.process.pid, encoding="ascii") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(key + ":"))


class Slow:
    """Processes of other users that hold connections."""

    def __init__(self, h, users, count, index=0, body=0):
        address = h.addresses[index]
        self.path = address[5:] if address.startswith("unix:") else address.split("//")[1].replace("[", "").replace("]", "")
        more = [str(count), self.path, str(body)]
        self.each = [subprocess.Popen([sys.executable, "-c", SLOW, str(u), *more], stdout=subprocess.PIPE) for u in users]

    def __enter__(self):
        for p in self.each:
            equal(p.stdout.readline(), b"held\n")
        return self

    def __exit__(self, *_):
        for p in self.each:
            p.kill()
            p.wait()
            p.stdout.close()
