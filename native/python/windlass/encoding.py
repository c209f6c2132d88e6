# SPDX-License-Identifier: Apache-2.0
"""Values as bytes, in the formats of Java's DataOutput and of the store.

A form is a string with a letter for each value. It has the letters of struct, with the most
significant byte first, and these:

    u   text: DataOutput.writeUTF, cut at 65,535 bytes
    v   the same; reading replaces characters that do not print
    s   text: a length of two bytes, and UTF-8
    t   text: a length of four bytes, and UTF-8; only written
    a   bytes: a length of four bytes, and the bytes
    o   the same, or None, which has the length -1
    m   64-bit integers: their number in four bytes, and each; only written
    g   UUID of 16 bytes
"""

from __future__ import annotations

import struct
import uuid
from typing import Any

from .errors import Malformed, expect


def printable(text: str) -> str:
    """Returns `text` with "?" for each character that could change a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _utf(text: str) -> bytes:
    out = bytearray()
    for (unit,) in struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        letter = b"\xc0\x80" if unit == 0 else chr(unit).encode("utf-8", "surrogatepass")
        if len(out) + len(letter) > 0xFFFF:
            break
        out += letter
    return struct.pack(">H", len(out)) + bytes(out)


def _sized(form: str, data: bytes) -> bytes:
    return struct.pack(form, len(data)) + data


_WRITERS = {
    "u": _utf,
    "v": _utf,
    "s": lambda text: _sized(">H", text.encode("utf-8")),
    "t": lambda text: _sized(">i", text.encode("utf-8")),
    "a": lambda data: _sized(">i", data),
    "o": lambda data: struct.pack(">i", -1) if data is None else _sized(">i", data),
    "m": lambda longs: struct.pack(f">i{len(longs)}q", len(longs), *longs),
    "g": lambda identity: identity.bytes,
}


def packed(form: str, *values: Any) -> bytes:
    """Returns the bytes of `values`, one for each letter of `form`."""
    return b"".join(
        _WRITERS[letter](value) if letter in _WRITERS else struct.pack(">" + letter, value)
        for letter, value in zip(form, values))


class Reader:
    """Reads bytes of another process. Raises Malformed if there are too few or they are wrong."""

    def __init__(self, data: Any) -> None:
        self._data = memoryview(data)
        self._at = 0

    def take(self, count) -> bytes:
        expect(0 <= count <= len(self._data) - self._at, "it ends early")
        self._at += count
        return bytes(self._data[self._at - count:self._at])

    def unpack(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(">" + form, self.take(struct.calcsize(">" + form)))

    def fields(self, form: str) -> list[Any]:
        """Returns the values that `packed` was given."""
        return [_READERS[each](self) if each in _READERS else self.unpack(each)[0]
                for each in form]

    def byte(self):
        return self.unpack("B")[0]

    def int(self):
        return self.unpack("i")[0]

    def ints(self, most) -> list[Any]:
        """Returns integers behind their number, which is at most `most`."""
        count = self.int()
        expect(0 <= count <= most, f"{count} numbers, where {most} may be")
        return list(self.unpack(f"{count}i"))

    def utf(self) -> str:
        return self.take(self.unpack("H")[0]).replace(b"\xc0\x80", b"\0").decode("utf-8", "replace")

    def text(self) -> str:
        try:
            return self.take(self.unpack("H")[0]).decode("utf-8")
        except UnicodeDecodeError:
            raise Malformed("a text that is not UTF-8") from None

    def array(self) -> bytes:
        return self.take(self.int())

    def optional(self) -> Any:
        length = self.int()
        return None if length == -1 else self.take(length)

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)

    def end(self) -> None:
        left = len(self._data) - self._at
        expect(left == 0, f"{left} bytes too many")


_READERS = {
    "u": Reader.utf,
    "v": lambda reader: printable(reader.utf()),
    "s": Reader.text,
    "a": Reader.array,
    "o": Reader.optional,
    "g": lambda reader: uuid.UUID(bytes=reader.take(16)),
}


def fingerprint(text: str) -> int:
    """Returns a 64-bit hash as Java's: FNV-1a over words that SplitMix64's finalizer has mixed."""
    mask = (1 << 64) - 1

    def mixed(value: int) -> int:
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
