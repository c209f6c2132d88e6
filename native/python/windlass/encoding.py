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
    l   texts: their number in four bytes, and each as of "s"
    g   UUID of 16 bytes
    .   the end of the bytes, as the last letter; only read
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
    "l": lambda texts: packed("i" + "s" * len(texts), len(texts), *texts),
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

    def field(self, letter: str) -> Any:
        if letter in _READERS:
            return _READERS[letter](self)
        return struct.unpack(">" + letter, self.take(struct.calcsize(">" + letter)))[0]

    def fields(self, form: str) -> list[Any]:
        """Returns the values that `packed` was given."""
        values = [self.field(each) for each in form.rstrip(".")]
        if form.endswith("."):
            self.end()
        return values

    def ints(self, most) -> list[Any]:
        """Returns integers behind their number, which is at most `most`."""
        count = self.field("i")
        expect(0 <= count <= most, f"{count} numbers, where {most} may be")
        return self.fields("i" * count)

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)

    def end(self) -> None:
        left = len(self._data) - self._at
        expect(left == 0, f"{left} bytes too many")


def _strict(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed("a text that is not UTF-8") from None


_READERS = {
    "u": lambda reader: reader.take(reader.field("H")).replace(b"\xc0\x80", b"\0").decode(
        "utf-8", "replace"),
    "v": lambda reader: printable(reader.field("u")),
    "s": lambda reader: _strict(reader.take(reader.field("H"))),
    "a": lambda reader: reader.take(reader.field("i")),
    "o": lambda reader: None if (length := reader.field("i")) == -1 else reader.take(length),
    "l": lambda reader: [reader.field("s") for _ in range(reader.field("i"))],
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
