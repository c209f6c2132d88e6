# SPDX-License-Identifier: Apache-2.0
"""Random frames at the server and the client of a Python store. Each ends a session or is refused,
as the protocol says. The server serves honest members on, and calls raise what they document."""

import contextlib
import logging
import os
import random
import secrets
import socket
import struct
import time

import windlass
from seal_checks import Log
from windlass import server, store
from windlass.deadline import Deadline
from windlass.encoding import packed

TOKEN = secrets.token_bytes(32)
REQUESTS = [
    packed("Bisa", store.SET, 1, "a", b"1"), packed("Bis", store.GET, 2, "a"),
    packed("Bis", store.KEYS, 3, ""), packed("Bi", store.PING, 0),
    packed("Bis", store.LEAVE, 0, "bye"), packed("Bi", store.CANCEL, 4),
    packed("Biiso", store.AWAIT, 4, 1, "a", None),
    packed("Biisoso", store.AWAIT, 4, 2, "a", b"1", "h", None),
    packed("Bisoo", store.CAS, 5, "a", b"1", None), packed("Bisa", store.HOLD, 6, "h", b"1")]
REPLIES = [
    packed("Bi", 0, 1), packed("Bio", 0, 1, None), packed("Bio", 0, 1, b"1"),
    packed("Biis", 0, 1, 1, "key"), packed("BiB", 0, 1, 0), 
    packed("Bis", 2, 1, "why"), packed("Bis", 4, 0, "end"),
    packed("Biso", 0, 1, "a", b"1"), packed("BiB", 0, 1, 1)]
GREETING = [
    packed("Biis", store.HELLO, store.MAGIC, store.STORE_PROTOCOL, "0.1.0") + bytes(32)
    + packed("iis", 0, 1, "job"), bytes([store.PROOF]) + bytes(32), packed("Bis", 5, 8, "")]
LENGTHS = (0, 1, -1, 255, 4096, 4097, 0x7FFFFFFF, -0x80000000)


def mutated(chance, known):
    """Random bytes, or a known body with a few changes."""
    if chance.random() < 0.1:
        return chance.randbytes(chance.randint(1, 80))
    body = bytearray(chance.choice(known))
    for _ in range(chance.choice((0, 1, 1, 1, 2, 4))):
        at, how = chance.randrange(len(body)), chance.randrange(5)
        if how == 0:
            body[at] ^= 1 << chance.randrange(8)
        elif how == 1:
            body[at] = chance.randrange(256)
        elif how == 2:
            body[at:at] = chance.randbytes(chance.randint(1, 8))
        elif how == 3 and len(body) > 1:
            del body[at:at + chance.randint(1, 8)]
        else:
            body[at:at + 4] = struct.pack(">i", chance.choice(LENGTHS))
        if not body:
            body = bytearray(b"\0")
    return bytes(body)


def run(frames):
    """frames: how many of them each of the three parsers gets."""
    seed = int(os.environ.get("TEST_SEED") or time.time_ns() % (1 << 32))
    print("seed", seed, "frames", frames, flush=True)
    chance = random.Random(seed)
    log = Log()
    logging.getLogger("windlass").addHandler(log)
    logging.getLogger("asyncio").addHandler(log)
    opened = server.StoreServer(("127.0.0.1", 0), TOKEN, Deadline(30))
    strangers(chance, opened, frames)
    members(chance, opened, frames)
    opened.close()
    assert not opened._thread.is_alive()
    client(chance, frames)
    faults = [line for line in log.lines if "sent" not in line and "goes, because" not in line
              and "is left: this member got" not in line and "so far" not in line]
    assert not faults, faults[:5]


def strangers(chance, opened, frames):
    """They send frames, or anything, without the token."""
    while frames > 0:
        with socket.create_connection(opened.address) as stranger:
            count = chance.randint(1, 4)
            frames -= count
            data = b""
            for _ in range(count):
                body = mutated(chance, GREETING)
                data += struct.pack(">i", len(body)) + body if chance.random() < 0.8 else body
            with contextlib.suppress(OSError):
                stranger.sendall(data)
    serves(opened)


def serves(opened):
    """An honest member is served. Whether a start is in progress is for the others."""
    honest = store.Store(opened.address, TOKEN, "honest", 3, 4, Deadline(30))
    value = secrets.token_bytes(8)
    honest.set("honest", value, Deadline(30))
    assert honest.get("honest", Deadline(30)) == value
    honest.close()


def members(chance, opened, frames):
    """They have the token, and seal what they send."""
    done = 0
    while done < frames:
        member = store.Store(opened.address, TOKEN, "raw", -1, 0, Deadline(30))
        bodies = [mutated(chance, REQUESTS) for _ in range(min(32, frames - done))]
        done += len(bodies)
        with contextlib.suppress(OSError):
            member._socket.settimeout(30)
            member._socket.sendall(b"".join(member._frames.made(each) for each in bodies))
            if chance.random() < 0.5:
                member._socket.recv(1 << 16)
        member.close()
        if done % 1024 < 32:
            serves(opened)
    serves(opened)


CALLS = [
    lambda each, until: each.set("a", b"1", until), lambda each, until: each.get("a", until),
    lambda each, until: each.keys("", until), lambda each, until: each.hold("a", b"", until),
    lambda each, until: each.await_other("a", None, until),
    lambda each, until: each.compare_and_set("a", None, b"", until),
    lambda each, until: each.await_any({"a": b"1", "b": None}, until)]


def client(chance, frames):
    """The replies of a store that has the token, and answers anything."""
    each = None
    for _ in range(frames):
        if each is None or each.lost is not None:
            if each is not None:
                each.close()
                peer.close()
            each, own, peer = pair()
        each._id = 0
        body = mutated(chance, REPLIES)
        peer.sendall(own.made(body) if chance.random() < 0.95 else body)
        with contextlib.suppress(windlass.WindlassException):
            chance.choice(CALLS)(each, Deadline(0.001))
        drained(peer)
    each.close()
    peer.close()


def pair():
    """(a client that has greeted, the store's frames, the store's socket)."""
    each = store.Store.__new__(store.Store)
    each._socket, peer = socket.socketpair()
    each.address, each.lost, each._id = "pair", None, 0
    each.silence, each._heard = 60.0, time.monotonic()
    each._frames, own = store.Frames(), store.Frames()
    each._frames.seal(TOKEN, b"hello", b"challenge", False)
    own.seal(TOKEN, b"hello", b"challenge", True)
    return each, own, peer


def drained(peer):
    peer.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while peer.recv(1 << 16):
            pass
    peer.setblocking(True)
