# SPDX-License-Identifier: Apache-2.0
"""A peer that speaks ZeroMQ as it likes, and the keys of the tests' boards."""
import ctypes
import ctypes.util

from cases import check


def keys_of(name):
    """The pair that link_node has for this name."""
    sodium = ctypes.CDLL(ctypes.util.find_library("sodium"))
    seed, public, secret = (ctypes.create_string_buffer(32) for _ in range(3))
    sodium.crypto_generichash(seed, ctypes.c_size_t(32), name.encode(), ctypes.c_ulonglong(len(name)), None, ctypes.c_size_t(0))
    sodium.crypto_box_seed_keypair(public, secret, seed)
    return public.raw, secret.raw


class raw_dealer:
    """A client of libzmq that keeps to none of our rules. @server: a name, or a public key; @key: a name; None:
    it speaks without keys."""

    def __init__(self, port, server, key):
        self.zmq = ctypes.CDLL(ctypes.util.find_library("zmq"))
        for name in ("zmq_ctx_new", "zmq_socket"):
            getattr(self.zmq, name).restype = ctypes.c_void_p
        self.context = ctypes.c_void_p(self.zmq.zmq_ctx_new())
        self.socket = ctypes.c_void_p(self.zmq.zmq_socket(self.context, 5))
        self.option(17, (0).to_bytes(4, "little"))
        if key:
            public, secret = keys_of(key)
            self.option(48, public)
            self.option(49, secret)
            self.option(50, server if isinstance(server, bytes) else keys_of(server)[0])
        check(self.zmq.zmq_connect(self.socket, b"tcp://127.0.0.1:%d" % port) == 0)

    def option(self, number, value):
        check(self.zmq.zmq_setsockopt(self.socket, number, value, ctypes.c_size_t(len(value))) == 0, "option", number)

    def send(self, parts):
        """Never waits: a refused connection would never take it. Return: whether the message was taken."""
        return all([self.zmq.zmq_send(self.socket, part, ctypes.c_size_t(len(part)), 1 | (2 if i + 1 < len(parts) else 0)) >= 0
                    for i, part in enumerate(parts)])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.zmq.zmq_close(self.socket)
        self.zmq.zmq_ctx_term(self.context)
