# SPDX-License-Identifier: Apache-2.0
"""Bytes as Java's DataOutput has them."""

import struct
import uuid

from .errors import Malformed


def printable(text):
    """What a stranger says, without what would change the reader's terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _utf(text):
    """DataOutput.writeUTF: two bytes of length and modified UTF-8, cut at what that may have."""
    out, units = bytearray(), text.encode("utf-16-be", "surrogatepass")
    for (unit,) in struct.iter_unpack(">H", units):
        letter = b"\xc0\x80" if unit == 0 else chr(unit).encode("utf-8", "surrogatepass")
        if len(out) + len(letter) > 0xFFFF:
            break
        out += letter
    return struct.pack(">H", len(out)) + bytes(out)


def array_bytes(value):
    return struct.pack(">i", len(value)) + value


_WRITERS = {  # by those letters of forms that struct does not have
    "u": _utf,
    "v": _utf,  # which is read without what would change the reader's terminal
    "a": array_bytes,
    "t": lambda text: array_bytes(text.encode("utf-8")),
    "m": lambda longs: struct.pack(f">i{len(longs)}q", len(longs), *longs),
    "g": lambda identity: identity.bytes,
}


def packed(form, *values):
    """The bytes of values, one for each letter of the form, as DataOutput writes them."""
    return b"".join(
        _WRITERS[letter](value) if letter in _WRITERS else struct.pack(">" + letter, value)
        for letter, value in zip(form, values))


class Reader:
    """Bytes from another process; what they lack is Malformed."""

    def __init__(self, data):
        self._data = memoryview(data)
        self._at = 0

    def left(self):
        return len(self._data) - self._at

    def take(self, count):
        if count < 0 or count > self.left():
            raise Malformed("it ends early")
        taken = bytes(self._data[self._at:self._at + count])
        self._at += count
        return taken

    def unpack(self, form):
        return struct.unpack(">" + form, self.take(struct.calcsize(">" + form)))

    def fields(self, form):
        """The values of which `packed` has made bytes."""
        readers = {"u": self.utf, "v": lambda: printable(self.utf()), "a": self.array,
                   "g": lambda: uuid.UUID(bytes=self.take(16))}
        return [readers[each]() if each in readers else self.unpack(each)[0] for each in form]

    def byte(self):
        return self.unpack("B")[0]

    def int(self):
        return self.unpack("i")[0]

    def long(self):
        return self.unpack("q")[0]

    def ints(self, most):
        return [self.int() for _ in range(min(max(0, self.int()), most))]

    def utf(self):
        return self.take(self.unpack("H")[0]).replace(b"\xc0\x80", b"\0").decode("utf-8", "replace")

    def array(self):
        return self.take(self.int())

    def rest(self):
        return self.take(self.left())

    def end(self):
        if self.left():
            raise Malformed(f"{self.left()} bytes too many")


def fingerprint(text):
    """A 64-bit hash as Java takes it: FNV-1a over words, each mixed by SplitMix64's finaliser."""
    mask = (1 << 64) - 1

    def mixed(value):
        z = (value + 0x9E3779B97F4A7C15) & mask
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
        return z ^ z >> 31

    units = text.encode("utf-16-be", "surrogatepass")
    state = 0xCBF29CE484222325
    for word in (len(units) // 2, *struct.unpack(f">{len(units) // 2}H", units)):
        state = ((state ^ mixed(word)) * 0x100000001B3) & mask
    value = mixed(state)
    return value - (1 << 64) if value >> 63 else value
