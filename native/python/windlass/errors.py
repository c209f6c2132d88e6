# SPDX-License-Identifier: Apache-2.0
"""Exceptions with the names of Java's, and checks that raise them."""

import contextlib


class WindlassException(Exception):
    """A failure: `code` is the C ABI's number, `culprits` the ranks at fault."""

    code = 11

    def __init__(self, message, culprits=()):
        super().__init__(message)
        self.culprits = list(culprits)

    @staticmethod
    def of(code, message, culprits=()):
        """The exception of a code; one that is unknown is an InternalException."""
        return _KINDS.get(code, InternalException)(message, culprits)


class InvalidArgumentException(WindlassException):
    """A call that can't be carried out as written; nothing was sent."""

    code = 1


class MismatchException(WindlassException):
    """Ranks disagree about an operation; the message names both sides."""

    code = 2


class DeadlineExceededException(WindlassException):
    """A deadline passed; the message names the ranks behind."""

    code = 3


class PeerLostException(WindlassException):
    """A peer of an operation is gone."""

    code = 4


class AbortedException(WindlassException):
    """Someone ended it; the message has the reason."""

    code = 5


class VerificationFailedException(WindlassException):
    """What arrived is not what was sent."""

    code = 6


class UnsupportedException(WindlassException):
    """A target, dtype or feature is lacking here."""

    code = 7


class ResourceException(WindlassException):
    """Memory, disk, /dev/shm or a permission is lacking."""

    code = 8


class ClosedException(WindlassException):
    """A call on what was closed."""

    code = 9


class DeviceException(WindlassException):
    """A fault of the device."""

    code = 10


class InternalException(WindlassException):
    """A fault of Windlass itself."""

    code = 11


_KINDS = {kind.code: kind for kind in WindlassException.__subclasses__()}


class Malformed(Exception):
    """Bytes of another process that are not what they should be."""


def require(condition, text):
    """Refuses the arguments of a call, or the variables of a start, unless `condition` holds."""
    if not condition:
        raise InvalidArgumentException(text)


def expect(condition, text):
    """Refuses bytes of another process unless `condition` holds."""
    if not condition:
        raise Malformed(text)


def tried(step):
    """What `step` gives and None; or None and its failure."""
    try:
        return step(), None
    except WindlassException as e:
        return None, e


def peek(of, data):
    """What `of` reads, None where it can't."""
    try:
        return None if data is None else of(data)
    except (Malformed, MismatchException):
        return None


@contextlib.contextmanager
def reading(what, advice="", culprits=()):
    """Makes a MismatchException of bytes of other ranks that can't be read; it names `what`."""
    try:
        yield
    except Malformed as e:
        raise MismatchException(f"{what} can't be read: {e}{advice}", culprits) from e
