# SPDX-License-Identifier: Apache-2.0
"""Exceptions with the names of Java's, and checks that raise them."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterable, Iterator, TypeVar

T = TypeVar("T")
_KINDS: dict[int, type[WindlassException]] = {}


class WindlassException(Exception):
    """A failure. `code` is the C ABI's number of its kind, `faulty_ranks` the ranks at fault."""

    code = 11

    def __init__(self, message: str, faulty_ranks: Iterable[int] = ()) -> None:
        super().__init__(message)
        self.faulty_ranks = list(faulty_ranks)

    def __init_subclass__(cls, code: int | None = None) -> None:
        if code is not None:
            cls.code = code
            _KINDS[code] = cls

    @staticmethod
    def of(code: int, message: str, faulty_ranks: Iterable[int] = ()) -> WindlassException:
        """Returns the exception of a code. An unknown code gives an InternalException."""
        return _KINDS.get(code, InternalException)(message, faulty_ranks)


class InvalidArgumentException(WindlassException, code=1):
    """A call can't be carried out as written. Nothing was sent."""


class MismatchException(WindlassException, code=2):
    """Ranks disagree about an operation. The message names both sides."""


class DeadlineExceededException(WindlassException, code=3):
    """A deadline passed. The message names the ranks behind."""


class PeerLostException(WindlassException, code=4):
    """A peer of an operation is gone."""


class AbortedException(WindlassException, code=5):
    """A rank ended the operation. The message has the reason."""


class VerificationFailedException(WindlassException, code=6):
    """The received bytes are not the sent bytes."""


class UnsupportedException(WindlassException, code=7):
    """A target, dtype or feature is missing here."""


class ResourceException(WindlassException, code=8):
    """Memory, disk, /dev/shm or a permission is missing."""


class ClosedException(WindlassException, code=9):
    """A call used a closed object."""


class DeviceException(WindlassException, code=10):
    """The device has failed."""


class InternalException(WindlassException, code=11):
    """Windlass itself has a fault."""


class Malformed(Exception):
    """Bytes of another process break their format."""


def require(condition: Any, text: str, kind: type[WindlassException] = InvalidArgumentException,
            faulty_ranks: Iterable[int] = ()) -> None:
    """Raises an exception of this kind unless `condition` holds."""
    if not condition:
        raise kind(text, faulty_ranks)


def expect(condition: Any, text: str) -> None:
    """Raises Malformed unless `condition` holds."""
    if not condition:
        raise Malformed(text)


def tried(work: Callable[[], T]) -> tuple[T | None, WindlassException | None]:
    """Returns the result of `work` and None, or None and the WindlassException that it raised."""
    try:
        return work(), None
    except WindlassException as e:
        return None, e


def peek(read: Callable[[bytes], T], data: bytes | None) -> T | None:
    """Returns read(data), or None if there is no data or it can't be read."""
    try:
        return None if data is None else read(data)
    except (Malformed, MismatchException):
        return None


@contextlib.contextmanager
def reading(what: str, advice: str = "", faulty_ranks: Iterable[int] = ()) -> Iterator[None]:
    """Turns Malformed into a MismatchException that names `what` was read."""
    try:
        yield
    except Malformed as e:
        raise MismatchException(f"{what} can't be read: {e}{advice}", faulty_ranks) from e
