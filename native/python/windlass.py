# SPDX-License-Identifier: Apache-2.0
"""Windlass for a rank that is no JVM: one file over ctypes and the C ABI, for Python 3.8 and later.

A guest joins a communicator with the launch variables that JVM ranks read, and at the same
rendezvous; it takes part in barrier, broadcast and all-reduce; and as a job of guests it sends the
versions of its tensors to a job of JVMs, which plans and hands each guest its part. docs/guests.md
has the protocol and the limits.

    import windlass
    with windlass.Job.from_environment("trainer") as job:
        with job.meet("policy", deadline=60) as link:
            batch = link.batch()
            batch.add("w", [4096, 1024], parameter, "tp=2:S0")
            with batch.register(deadline=60) as transfer:
                transfer.send(1, deadline=60)

Tensors are numpy arrays, torch CPU tensors, or a `Tensor` over any address; neither package is
imported here. Deadlines are seconds. Errors are exceptions with the names of Java's.
"""

import collections
import contextlib
import ctypes
import hashlib
import hmac
import ipaddress
import itertools
import logging
import math
import operator
import os
import re
import secrets
import selectors
import socket
import stat
import struct
import sys
import threading
import time
import uuid
from ctypes import POINTER, byref, c_char, c_char_p, c_int32, c_int64, c_uint32, c_uint64, c_void_p

# What two sides compare, as the JVM's classes have it.
ABI = 13
START_PROTOCOL = 4
STORE_PROTOCOL = 2
MEETING_PROTOCOL = 3
PLAN_VERSION = 3
OFFER_FORMAT = 3
TABLE_FORMAT = 1

# As windlass.h has it.
_MAX_BLOCKS = 64


# ---- errors ----


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


class _Malformed(Exception):
    """Bytes of another process that are not what they should be."""


def _require(condition, text):
    """Refuses the arguments of a call, or the variables of a start, unless `condition` holds."""
    if not condition:
        raise InvalidArgumentException(text)


def _expect(condition, text):
    """Refuses bytes of another process unless `condition` holds."""
    if not condition:
        raise _Malformed(text)


# ---- the C ABI ----

_MOST_RANKS = 4096
_OP_BARRIER, _OP_BROADCAST, _OP_ALL_REDUCE = 1, 3, 10
_OP_LINK, _OP_LINK_REGISTER, _OP_LINK_MOVE = 23, 24, 25
_NO_VERSION = -2
_REDUCE_OPS = {"sum": 0, "max": 1, "min": 2, "product": 3, "avg": 4}
DTYPES = {
    name: (code, size)
    for code, (name, size) in enumerate(
        [("bool", 1), ("u8", 1), ("i8", 1), ("f8e5m2", 1), ("f8e4m3", 1), ("f8e8m0", 1),
         ("i16", 2), ("u16", 2), ("f16", 2), ("bf16", 2), ("i32", 4), ("u32", 4), ("f32", 4),
         ("f64", 8), ("i64", 8), ("u64", 8), ("c64", 8), ("f8e4m3fnuz", 1), ("f8e5m2fnuz", 1)])
}
"""Each dtype's number in the C ABI, and its bytes."""

_FLOATING = {name for name in DTYPES if re.match("b?f", name)}


def _struct(**fields):
    """The class of a struct of the C ABI, which begins with its size."""

    class Struct(ctypes.Structure):
        _fields_ = [("struct_size", c_uint32), *fields.items()]

    return Struct


def _sized(struct, **values):
    return struct(struct_size=ctypes.sizeof(struct), **values)


_Error = _struct(
    code=c_int32, operation=c_int32, observer=c_int32, sequence=c_uint32, culprit_count=c_int32,
    culprits=c_int32 * 64, message=c_char * 2048)
_GroupConfig = _struct(
    ranks=c_int32, first_sequence=c_uint32, cores=c_int32, deadline_ns=c_int64, blocks=c_int32,
    adjust_threads=c_int32, device_cores=c_int32, hosts=c_void_p)
_Process = _struct(pid=c_int32, started=c_uint64, pid_namespace=c_uint64)
_TensorStruct = _struct(
    dtype=c_int32, ndim=c_uint32, reserved=c_uint32, data=c_void_p, shape=POINTER(c_int64),
    strides=POINTER(c_int64))
_CollectiveCall = _struct(
    operation=c_int32, in_=c_void_p, in_elements=c_uint64, out=c_void_p, out_elements=c_uint64,
    dtype=c_int32, op=c_int32, algorithm=c_int32, root=c_int32, rows=c_int64, in_counts=c_void_p,
    in_offsets=c_void_p, out_counts=c_void_p, out_offsets=c_void_p, received_counts=c_void_p,
    deadline_ns=c_int64, ticket=c_void_p, stream=c_uint64)
_TransferConfig = _struct(
    reserved=c_uint32, fingerprint=c_uint64, source_bindings=c_void_p,
    source_binding_words=c_uint64, source_binding_count=c_uint32, target_binding_count=c_uint32,
    target_bindings=c_void_p, target_binding_words=c_uint64, chunks=c_void_p, chunk_words=c_uint64,
    chunk_count=c_uint64, stages=c_void_p, stage_words=c_uint64, stage_count=c_uint64)

_error_p = c_void_p  # of a wl_error_t
_SIGNATURES = [  # result, arguments, functions that have these
    (c_uint32, [], "wl_abi_version"),
    (c_char_p, [], "wl_version wl_target"),
    (c_int32, [], "wl_allowed_cores"),
    (c_uint64, [c_int32], "wl_file_inode"),
    (None, [c_int32], "wl_file_close"),
    (c_int32, [c_void_p], "wl_comm_rank wl_comm_size wl_comm_quiescent"),
    (None, [c_void_p], "wl_group_release wl_comm_free wl_window_free wl_transfer_free"),
    (c_void_p, [c_void_p, c_int32], "wl_window_address"),
    (c_int32, [c_void_p, _error_p], "wl_process_self wl_comm_status wl_comm_close"),
    (c_int32, [c_void_p, c_void_p, _error_p], "wl_group_share wl_group_create wl_submit"),
    (c_int32, [c_void_p, c_int32, c_void_p, _error_p], "wl_file_open wl_group_join"),
    (c_int32, [c_int32, c_void_p, _error_p], "wl_group_attach"),
    (c_int32, [c_void_p, c_void_p, c_void_p, c_uint32, c_int64, _error_p],
     "wl_group_watch wl_group_connect"),
    (c_int32, [c_void_p, c_void_p, c_uint32, _error_p], "wl_group_open_wire"),
    (c_int32, [c_void_p, c_void_p, c_uint64, c_void_p, _error_p], "wl_group_wire_name"),
    (c_int32, [c_void_p, c_int32, c_int32, c_int64, c_void_p, _error_p], "wl_comm_split"),
    (c_int32, [c_void_p, c_char_p, _error_p], "wl_comm_abort"),
    (c_int32, [c_void_p, c_int32, c_void_p, c_uint32, c_char_p, _error_p], "wl_comm_fail"),
    (c_int32, [c_void_p, c_uint64, c_int64, c_void_p, _error_p], "wl_window_create"),
    (c_int32, [c_void_p, c_void_p, c_void_p, c_int32, c_void_p, _error_p], "wl_put"),
    (c_int32, [c_void_p, c_void_p, c_int32, c_uint64, c_uint32, _error_p], "wl_notify"),
    (c_int32, [c_void_p, c_void_p, c_int32, c_uint64, c_uint32, c_void_p, _error_p], "wl_test"),
    (c_int32, [c_void_p, c_void_p, c_int64, c_void_p, _error_p], "wl_transfer_create"),
    (c_int32, [c_void_p, c_uint64, c_void_p, c_int64, _error_p], "wl_transfer_move"),
]

_TARGETS = ("sim", "a2a3sim", "a5sim", "cuda", "a2a3", "a5")
_library = None
_process = os.getpid()
os.register_at_fork(after_in_child=lambda: globals().update(_process=os.getpid()))


def library_path(environment=None):
    """The native library's file: in the folder WINDLASS_LIBRARY_PATH, else beside this file."""
    environment = os.environ if environment is None else environment
    named = environment.get("WINDLASS_TARGET") or _TARGETS[0]
    target = named.lower()
    _require(target in _TARGETS,
             f'WINDLASS_TARGET is "{_printable(named)}"; known are {", ".join(_TARGETS)}; name one'
             " or unset it")
    name = "libwindlass.so" if target == "sim" else f"libwindlass-{target}.so"
    folder = environment.get("WINDLASS_LIBRARY_PATH") or os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        raise UnsupportedException(
            f"there is no {name} in {folder}; set WINDLASS_LIBRARY_PATH to the folder that has it,"
            " such as lib/ of the distribution")
    return path


def _whole(what, value, least=-(1 << 31), most=(1 << 31) - 1):
    """That integer. ctypes would take its lowest bits and say nothing."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidArgumentException(f"{what} is {value!r}; it must be an integer") from None
    if not least <= number <= most:
        raise InvalidArgumentException(
            f"{what} is {number}; it must be an integer from {least} to {most}")
    return number


def _whole_all(what, values):
    """Those extents, as a list."""
    try:
        values = list(values)
    except TypeError:
        raise InvalidArgumentException(
            f"{what} is {values!r}; it must be a sequence of integers") from None
    return [_whole(f"{what}: an extent", each, 0, (1 << 63) - 1) for each in values]


def _checked(plain, least, most):
    """The type of an argument of the C ABI that refuses what `plain` would cut to its size."""

    class Checked:
        @staticmethod
        def from_param(value):
            return value if isinstance(value, plain) else plain(
                _whole("an argument", value, least, most))

    return Checked


_WHOLE = {c_int32: _checked(c_int32, -(1 << 31), (1 << 31) - 1),
          c_int64: _checked(c_int64, -(1 << 63), (1 << 63) - 1),
          c_uint32: _checked(c_uint32, 0, (1 << 32) - 1),
          c_uint64: _checked(c_uint64, 0, (1 << 64) - 1)}


def native():
    """The native library, loaded on first use; UnsupportedException where it is another ABI's.

    There is no lock, since a signal handler could wait for it: several calls may load at once."""
    global _library
    if _library is None:
        path = library_path()
        try:
            library = ctypes.CDLL(path, use_errno=False)
            # Before the other calls, of which a library of another version may lack some.
            version = library.wl_abi_version()
            if version != ABI:
                raise UnsupportedException(
                    f"{path} has C ABI version {version}, this windlass.py wants {ABI}: use those"
                    " of one version")
            for result, arguments, names in _SIGNATURES:
                for function in (getattr(library, name) for name in names.split()):
                    function.restype = result
                    function.argtypes = [_WHOLE.get(each, each) for each in arguments]
        except (OSError, AttributeError) as e:
            raise UnsupportedException(f"{path} can't be used: {e}") from e
        _library = library
    return _library


def _error(code, error):
    count = max(0, min(error.culprit_count, 64))
    message = error.message.decode("utf-8", "replace")
    if code != AbortedException.code:  # whose reason a rank has given
        message = re.sub(r"\ballReduce\b", "all_reduce", message)
    return WindlassException.of(code, message, error.culprits[:count])


def _call(name, *arguments):
    """Calls a function of the C ABI that takes an error; the GIL is free meanwhile."""
    error = _sized(_Error)
    try:
        code = getattr(native(), name)(*arguments, byref(error))
    except ctypes.ArgumentError as e:
        raise InvalidArgumentException(f"{name}: {e}") from None
    if code != 0:
        raise _error(code, error)


class _Until:
    """The one deadline of several steps."""

    _LONGEST = 1e9

    def __init__(self, seconds):
        is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
        if not is_number or not 0 < seconds < float("inf"):
            raise InvalidArgumentException(
                f"deadline is {seconds!r}; it must be a finite number of seconds, more than 0")
        self.whole = min(float(seconds), self._LONGEST)
        self._end = time.monotonic() + self.whole

    def left(self):
        return max(0.0, self._end - time.monotonic())

    def over(self):
        return self.left() <= 0

    def ns(self):
        return max(1, int(self.left() * 1e9))

    def later(self, seconds):
        return _Until(self.left() + seconds)

    def pauses(self, first, most):
        """Yields at once, and then after pauses that grow, until the deadline is over."""
        pause = first
        while True:
            yield
            time.sleep(min(pause, self.left()))
            if self.over():
                return
            pause = min(2 * pause, most)


# ---- bytes as Java's DataOutput has them ----


def _printable(text):
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


def _array(value):
    return struct.pack(">i", len(value)) + value


_WRITERS = {  # by those letters of forms that struct does not have
    "u": _utf,
    "v": _utf,  # which is read without what would change the reader's terminal
    "a": _array,
    "t": lambda text: _array(text.encode("utf-8")),
    "m": lambda longs: struct.pack(f">i{len(longs)}q", len(longs), *longs),
    "g": lambda identity: identity.bytes,
}


def _packed(form, *values):
    """The bytes of values, one for each letter of the form, as DataOutput writes them."""
    return b"".join(
        _WRITERS[letter](value) if letter in _WRITERS else struct.pack(">" + letter, value)
        for letter, value in zip(form, values))


class _Reader:
    """Bytes from another process; what they lack is _Malformed."""

    def __init__(self, data):
        self._data = memoryview(data)
        self._at = 0

    def left(self):
        return len(self._data) - self._at

    def take(self, count):
        if count < 0 or count > self.left():
            raise _Malformed("it ends early")
        taken = bytes(self._data[self._at:self._at + count])
        self._at += count
        return taken

    def unpack(self, form):
        return struct.unpack(">" + form, self.take(struct.calcsize(">" + form)))

    def fields(self, form):
        """The values of which `_packed` has made bytes."""
        readers = {"u": self.utf, "v": lambda: _printable(self.utf()), "a": self.array,
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
            raise _Malformed(f"{self.left()} bytes too many")


def _fingerprint(text):
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


# ---- what a launcher says ----

_LAUNCHERS = [  # the first whose variables are there counts
    ("WINDLASS", "WINDLASS_RANK", "WINDLASS_WORLD_SIZE"),
    ("TORCHRUN", "RANK", "WORLD_SIZE"),
    ("OPEN_MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMIX", "PMIX_RANK", "SLURM_NTASKS"),
    ("SLURM", "SLURM_PROCID", "SLURM_NTASKS"),
]


class LaunchEnvironment:
    """What environment variables say of a process that a launcher started, as Java's class of this
    name reads them: rank, size, job, and where and by which token the ranks meet."""

    def __init__(self, environment=None):
        self._all = dict(os.environ if environment is None else environment)
        for name, rank, size in _LAUNCHERS:
            if self._get(rank) or not size.startswith("SLURM_") and self._get(size):
                break
        else:
            raise InvalidArgumentException(
                "no launcher has set its variables; start the program with torchrun, Open MPI's"
                " mpirun, srun or windlass run, or set WINDLASS_RANK, WINDLASS_WORLD_SIZE and"
                " WINDLASS_JOB")
        self.launcher = name
        if size.startswith("SLURM_") and self._get("SLURM_STEP_NUM_TASKS"):
            size = "SLURM_STEP_NUM_TASKS"  # of a step, which may have fewer than the job
        self._both(rank, size)
        if name == "PMIX":
            self._one_rank(rank, "SLURM_PROCID")
        elif name == "WINDLASS" and self._get("RANK"):
            self._one_rank(rank, "RANK")
        self.size = self._number(size, 1, _MOST_RANKS)
        self.rank = self._number(rank, 0, _MOST_RANKS - 1)
        _require(self.rank < self.size,
                 f"{rank} is {self._get(rank)!r}, and {size} is {self._get(size)!r}; a rank lies"
                 " below the number of ranks")
        _require(name != "SLURM" or self.size == 1 or self._get("SLURM_STEP_ID"),
                 "SLURM_STEP_ID is not set, as in a batch script, which is one process; start it"
                 " with srun")
        self.token = _token(self._all)
        self.rendezvous = None  # (host, port)
        self.launcher_has_store = False
        master = None
        told = self._get("WINDLASS_RENDEZVOUS")
        if told:
            if "://" in told:
                raise UnsupportedException(
                    f"WINDLASS_RENDEZVOUS is {told!r}; a Python rank meets at HOST:PORT or by a"
                    " file")
            self.rendezvous = _host_and_port("WINDLASS_RENDEZVOUS", told)
            self.launcher_has_store = told == self._get("WINDLASS_LAUNCHER_STORE")
        elif self._get("MASTER_ADDR") or self._get("MASTER_PORT"):
            self._both("MASTER_ADDR", "MASTER_PORT")
            port = self._number("MASTER_PORT", 1, 65535)
            master = f"{self._get('MASTER_ADDR')}:{self._get('MASTER_PORT')}"
            # torchrun's agent may hold MASTER_PORT itself.
            if self.token:
                self.rendezvous = (self._get("MASTER_ADDR"), port + 1 if port < 65535 else port - 1)
        self.job = self._job(master)
        if self.size == 1 and name != "WINDLASS":
            self._tell_others(name, rank, size)

    def _tell_others(self, name, rank, size):
        """Says what another launcher's variables say, where this one has a process be alone."""
        for other, its_rank, its_size in _LAUNCHERS:
            if its_size == "SLURM_NTASKS" and self._get("SLURM_STEP_NUM_TASKS"):
                its_size = "SLURM_STEP_NUM_TASKS"
            of, told = self._get(its_rank), self._get(its_size)
            if other not in (name, "PMIX") and of and told.isdigit() and int(told) > 1:
                logging.getLogger("windlass").warning(
                    "%s and %s say rank 0 of 1, and count; %s and %s say rank %s of %s: unset those"
                    " that are left from another start, or set WINDLASS_RANK and"
                    " WINDLASS_WORLD_SIZE", rank, size, its_rank, its_size, of, told)

    def _get(self, name):
        return self._all.get(name, "")

    def _both(self, one, other):
        if bool(self._get(one)) != bool(self._get(other)):
            there, missing = (one, other) if self._get(one) else (other, one)
            raise InvalidArgumentException(
                f"{there} is {self._get(there)!r}, and {missing} is not set; set both")

    def _one_rank(self, rank, other):
        self._both(rank, other)
        _require(self._get(rank) == self._get(other),
                 f"{rank} is {self._get(rank)!r}, and {other} is {self._get(other)!r}: one launcher"
                 " runs inside another; unset the variables of the one not meant")

    def _number(self, name, least, most):
        text = self._get(name)
        value = int(text) if re.fullmatch("[0-9]{1,18}", text) else -1
        _require(least <= value <= most,
                 f"{name} is {text!r}; it must be a number from {least} to {most}")
        return value

    def _id(self, name):
        text = self._get(name)
        _require(len(text) <= 255 and all(31 < ord(c) < 127 or ord(c) >= 160 for c in text),
                 f"{name} has {len(text)} characters, or some that do not print; a job's id has at"
                 " most 255 that do")
        return text

    def _job(self, master):
        if self._get("WINDLASS_JOB"):
            return self._id("WINDLASS_JOB")
        if self.launcher == "TORCHRUN":
            run = self._id("TORCHELASTIC_RUN_ID")
            return run if run and run != "none" else master
        if self.launcher in ("OPEN_MPI", "PMIX"):
            return self._id("PMIX_NAMESPACE") or None
        if self.launcher == "SLURM" and self._get("SLURM_JOB_ID"):
            step = self._id("SLURM_STEP_ID")
            return self._id("SLURM_JOB_ID") + ("." + step if step else "")
        return None

    def __repr__(self):
        where = f"rank {self.rank} of {self.size}, job {self.job}"
        return f"LaunchEnvironment({self.launcher}: {where})"


def _token(environment):
    """The token that variables give, or that a file has which they name; None for none."""
    digits = environment.get("WINDLASS_TOKEN", "")
    name = environment.get("WINDLASS_TOKEN_FILE", "")
    _require(not digits or not name,
             "WINDLASS_TOKEN_FILE and WINDLASS_TOKEN are both set; unset either")
    if name:
        try:
            with open(os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                if not stat.S_ISREG(mode) or mode & 0o077:
                    raise ResourceException(
                        f"{name} is no regular file, or open to others than its owner; chmod"
                        " 600 it, and make a new token")
                digits = file.read(66).decode("ascii", "replace").strip()
        except OSError as e:
            raise ResourceException(f"{name}: a token can't be read: {e.strerror}") from e
    elif not digits:
        return None
    _require(re.fullmatch("[0-9a-fA-F]{64}", digits),
             f"{name or 'WINDLASS_TOKEN'} has no token, which is 64 hexadecimal digits")
    return bytes.fromhex(digits)


def _host_and_port(setting, text):
    found = re.fullmatch(r"(?:\[([^\[\]]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})", text)
    _require(found and 1 <= int(found[3]) <= 65535,
             f"{setting} is {text!r}; it must be HOST:PORT, such as 127.0.0.1:29500 or [::1]:29500")
    return found[1] or found[2], int(found[3])


# ---- the store where ranks and jobs meet ----

_MAGIC = 0x574C5354
_HELLO, _CHALLENGE, _PROOF, _WELCOME, _REFUSED = 1, 2, 3, 4, 5
_SET, _GET, _AWAIT, _ADD, _CAS, _HOLD, _KEYS, _CANCEL, _PING, _LEAVE = range(16, 26)
_KEY, _VALUE, _TOTAL = 512, 512 << 10, 64 << 20
_MEETING_FRAME, _FRAME = 1 << 10, 2 * (512 << 10) + 512 + 64
_NO_CALL = 0
_SEAL = 16
_LONGEST_ATTEMPT = 5.0


def _text(value):
    data = value.encode("utf-8")
    return struct.pack(">H", len(data)) + data


def _optional(value):
    return struct.pack(">i", -1) if value is None else _array(value)


def _take_text(reader, most):
    length = reader.unpack("H")[0]
    if length > most:
        raise _Malformed(f"a text of {length} bytes")
    try:
        return reader.take(length).decode("utf-8")
    except UnicodeDecodeError:
        raise _Malformed("a text that is no UTF-8") from None


def _take_optional(reader):
    length = reader.int()
    if length == -1:
        return None
    if not 0 <= length <= _VALUE:
        raise _Malformed(f"an array of {length} bytes")
    return reader.take(length)


def _take_value(reader):
    value = _take_optional(reader)
    if value is None:
        raise _Malformed("no value")
    return value


def _take_prefix(reader):
    return _take_text(reader, _KEY)


def _take_key(reader):
    key = _take_prefix(reader)
    if not key:
        raise _Malformed("an empty key")
    return key


def _take_reason(reader):
    return _take_text(reader, 800)


def _log():
    return logging.getLogger("windlass")


def _proof(token, whose, hello, challenge):
    """What shows, without showing the token, that who has said or heard both holds it."""
    proof = hmac.new(token, ("windlass store: " + whose).encode("ascii") + b"\0", hashlib.sha256)
    for part in (hello, challenge):
        proof.update(struct.pack(">i", len(part)) + part)
    return proof.digest()


def _version():
    return native().wl_version().decode("ascii")


class _Frames:
    """Frames of a socket, both ways. What has come is bounded, whatever lengths announce. Once both
    sides have shown the token, frames are numbered, and a seal follows each: the start of an HMAC
    over its number, its length and its body, by the key of this session and direction."""

    def __init__(self, sock):
        self.socket = sock
        self.longest = _MEETING_FRAME
        self.queued = 0
        self._out = collections.deque()
        self._in = bytearray()
        self._sends = self._receives = None  # each a key, and the number of the next frame

    def met(self, sends, receives):
        """From now on frames may be long, and are sealed by these keys."""
        self.longest = _FRAME
        self._sends, self._receives = [sends, 0], [receives, 0]

    @staticmethod
    def _seal(direction, parts):
        key, number = direction
        direction[1] += 1
        seal = hmac.new(key, struct.pack(">q", number), hashlib.sha256)
        for part in parts:
            seal.update(part)
        return seal.digest()[:_SEAL]

    def fill(self):
        """Takes what has come, some of it at least; False at the end of the stream."""
        try:
            data = self.socket.recv(64 << 10)
        except BlockingIOError:
            return True
        self._in += data
        return bool(data)

    def next(self):
        """The body of the next frame that has come whole; None for none."""
        if len(self._in) < 4:
            return None
        (length,) = struct.unpack_from(">i", self._in)
        if not 1 <= length <= self.longest:
            raise _Malformed(f"a frame of {length} bytes, of at most {self.longest}")
        end = whole = 4 + length
        if self._receives is not None:
            whole += _SEAL
        if len(self._in) < whole:
            return None
        frame, seal = bytes(self._in[:end]), bytes(self._in[end:whole])
        del self._in[:whole]
        if seal and not hmac.compare_digest(seal, self._seal(self._receives, [frame])):
            raise _Malformed("a frame that does not fit its seal: it was changed, repeated, dropped"
                             " or moved on its way")
        return frame[4:]

    def left(self):
        """Bytes that have come and are in no frame so far."""
        return len(self._in)

    def send(self, *body):
        """Queues a frame, of which others may have parts too, for flush() to write."""
        frame = [struct.pack(">i", sum(map(len, body))), *body]
        if self._sends is not None:
            frame.append(self._seal(self._sends, frame))
        self._out.extend(memoryview(part) for part in frame if part)
        self.queued += sum(map(len, frame))

    def flush(self):
        """Writes what the socket takes; True once nothing waits."""
        try:
            while self._out:
                sent = self.socket.sendmsg([*itertools.islice(self._out, 16)])
                self.queued -= sent
                while sent > 0:
                    part = self._out.popleft()
                    if sent < len(part):
                        self._out.appendleft(part[sent:])
                    sent -= min(sent, len(part))
        except BlockingIOError:
            return False
        return True


class _Store:
    """A member's way into a store: one connection, one call at a time. A member that says nothing
    for as long as the server bears silence is taken for gone, so every wait speaks up meanwhile."""

    def __init__(self, address, token, job, rank, size, until, opened=False):
        """Connects, and waits until there is a store, unless it was `opened` before."""
        self.address = "%s:%d" % address
        self._who = f"connect to the store at {self.address} as rank {rank} of {size}"
        self._id = _NO_CALL
        self._lost = None  # why there are no answers any more
        why = "no answer"
        for _ in until.pauses(0.005, 0.2):
            try:
                self._connect(address, token, job, rank, size, until)
                return
            except (_Malformed, struct.error) as e:
                raise InvalidArgumentException(
                    f"{self._who}: what listens there is no store of Windlass: {e}") from e
            except OSError as e:
                if opened and isinstance(e, ConnectionRefusedError):
                    raise PeerLostException(f"{self._who}: its owner has ended: {e}") from e
                if why == "no answer" or not until.over():  # what was met before tells more
                    why = str(e)
        raise DeadlineExceededException(
            f"{self._who}: no store there after {until.whole:g} s: {why}; does its owner run?")

    def _connect(self, address, token, job, rank, size, until):
        def attempt():
            """A stranger who listens there, and says nothing, costs no more than this."""
            return max(0.001, min(_LONGEST_ATTEMPT, until.left()))

        sock = socket.create_connection(address, timeout=attempt())
        self._frames = _Frames(sock)
        self._selector = selectors.DefaultSelector()
        try:
            if sock.getsockname() == sock.getpeername():
                raise ConnectionRefusedError("nobody listens there")
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setblocking(False)
            self._selector.register(sock, selectors.EVENT_READ)
            self._greet(token, job, rank, size, _Until(attempt()))
        except BaseException:
            self.close()
            raise

    def _greet(self, token, job, rank, size, until):
        hello = (struct.pack(">Bii", _HELLO, _MAGIC, STORE_PROTOCOL) + _text(_version())
                 + secrets.token_bytes(32) + struct.pack(">ii", rank, size) + _text(job))
        self._frames.send(hello)
        whole = self._answer(_CHALLENGE, until)
        challenge, claimed = whole[:-32], whole[-32:]
        if len(challenge) < 35:
            raise _Malformed(f"a challenge of {len(whole)} bytes")
        if not hmac.compare_digest(claimed, _proof(token, "server", hello, challenge)):
            self._frames.send(struct.pack(">Bi", _REFUSED, 8) + _text(""))
            self._frames.flush()
            raise ResourceException(
                f"{self._who}: the store holds another token than this member; set"
                " WINDLASS_TOKEN_FILE to the store's")
        self._frames.send(bytes([_PROOF]) + _proof(token, "member", hello, challenge))
        self._frames.met(_proof(token, "the member's frames", hello, challenge),
                         _proof(token, "the server's frames", hello, challenge))
        welcome = _Reader(self._answer(_WELCOME, until)[1:])
        silence = welcome.long()
        welcome.end()
        if silence < 1:
            raise _Malformed(f"a silence of {silence} ms")
        self.silence = silence / 1000
        self._heard = self._pinged = time.monotonic()

    def _answer(self, kind, until):
        """The next frame of a greeting; a refusal is raised."""
        while (body := self._frames.next()) is None:
            if until.over():
                raise TimeoutError(f"whoever listens there gave no answer for {until.whole:g} s")
            self._wait(until.left())
        if body[0] == _REFUSED:
            reader = _Reader(body[1:])
            code = reader.int()
            if code not in (2, 8):
                raise _Malformed(f"a refusal of code {code}")
            text = _printable(_take_text(reader, 800))
            raise WindlassException.of(code, f"{self._who}: refused: {text}")
        if body[0] != kind:
            raise _Malformed(f"a frame of kind {body[0]}")
        return body

    def _wait(self, seconds):
        """Writes what waits, and takes what comes meanwhile; whether anything came."""
        events = selectors.EVENT_READ
        try:
            if not self._frames.flush():
                events |= selectors.EVENT_WRITE
        except OSError:
            if self._id != _NO_CALL:
                self._hear_last()
            raise
        self._selector.modify(self._frames.socket, events)
        came = False
        for _, ready in self._selector.select(max(0.0, seconds)):
            if ready & selectors.EVENT_READ:
                came = True
                if not self._frames.fill():
                    raise ConnectionResetError("it closed the connection")
        return came

    def _ask(self, kind, key, body, until, what, read):
        """What `read` takes from the answer."""
        self._id = self._id % 0x7FFFFFFF + 1
        try:
            if self._lost is not None:
                raise self._lost
            self._frames.send(struct.pack(">Bi", kind, self._id) + _text(key) + body)
            while True:
                reply = self._next()
                if reply is not None:
                    reader = _Reader(reply)
                    code, number = reader.unpack("Bi")
                    if number != self._id:
                        continue  # of a call that nobody waits for any more, or of a ping
                    if code == 0:
                        return read(reader)
                    text = _printable(_take_text(reader, 800))
                    raise WindlassException.of(code, f"{what} {key}: {text}")
                if until.over():
                    if kind == _AWAIT:
                        self._frames.send(struct.pack(">Bi", _CANCEL, self._id))
                        self._frames.flush()
                    raise DeadlineExceededException(
                        f"{what} {key}: no answer of the store at {self.address} after"
                        f" {until.whole:g} s")
                self._listen(until)
        except OSError as e:
            self._lost = e
            raise PeerLostException(
                f"{what} {key}: the store at {self.address} was lost: {e}; its owner has ended,"
                " closed it or turned this member away") from e
        except _Malformed as e:
            raise InternalException(
                f"{what} {key}: the store at {self.address} answered with {e}") from e

    def _next(self):
        """The next frame, if one has come whole. One that is none ends the session, and so does one
        by which the store says why it goes."""
        try:
            reply = self._frames.next()
            if reply is not None:
                reader = _Reader(reply)
                code, number = reader.unpack("Bi")
                if number == _NO_CALL and code != 0:
                    raise ConnectionAbortedError(_printable(_take_text(reader, 800)))
            return reply
        except _Malformed as e:
            why = f"this member got {e}"
            _log().warning("The store at %s is left: %s", self.address, why)
            with contextlib.suppress(OSError):
                self._frames.send(struct.pack(">Bi", _LEAVE, _NO_CALL) + _text(why))
                self._frames.flush()
            raise ConnectionAbortedError(why) from e

    def _hear_last(self):
        """Raises what the store said last, if it said why it goes."""
        with contextlib.suppress(OSError):
            for _ in range(64):
                if not self._frames.fill():
                    break
        while self._next() is not None:
            pass

    def _listen(self, until):
        now = time.monotonic()
        if self._wait(min(until.left(), self.silence / 3)):
            self._heard = time.monotonic()
        elif now - self._heard > self.silence:
            raise TimeoutError(f"it has said nothing for {self.silence:g} s")
        if now - self._pinged >= self.silence / 3:
            self._pinged = now
            self._frames.send(struct.pack(">Bi", _PING, _NO_CALL))

    @staticmethod
    def _value(reader):
        value = _take_optional(reader)
        reader.end()
        return value

    def set(self, key, value, until):
        self._ask(_SET, key, _array(value), until, "set", _Reader.rest)

    def get(self, key, until):
        return self._ask(_GET, key, b"", until, "get", self._value)

    def await_other(self, key, seen, until):
        """What a key has, None for nothing, once that is other than `seen`."""
        return self._ask(_AWAIT, key, _optional(seen), until, "await", self._value)

    def compare_and_set(self, key, expected, value, until):
        body = _optional(expected) + _optional(value)
        return self._ask(_CAS, key, body, until, "compare and set", _Reader.byte) != 0

    def hold(self, key, value, until):
        """Sets a key that is not there, as long as this connection lasts; whether it did."""
        return self._ask(_HOLD, key, _array(value), until, "hold", _Reader.byte) != 0

    def keys(self, prefix, until):
        def listed(reader):
            return [_take_text(reader, _KEY) for _ in range(reader.int())]

        return self._ask(_KEYS, prefix, b"", until, "keys", listed)

    def close(self):
        self._selector.close()
        self._frames.socket.close()


class _StoreServer:
    """The store of a start whose rank 0 is this process: one thread, which no connection can make
    wait. Who has not shown the token is a stranger: few, with little time and short frames."""

    _STRANGERS, _MEMBERS, _WAITS = 512, 8192, 1024
    _PROOF_SECONDS, _SILENCE_MS, _BACKLOG = 10.0, 60_000, 1 << 20

    # By its kind, how what a request says is read.
    _FIELDS = {
        _SET: (_take_key, _take_value), _GET: (_take_key,), _AWAIT: (_take_key, _take_optional),
        _ADD: (_take_key, _Reader.long), _CAS: (_take_key, _take_optional, _take_optional),
        _HOLD: (_take_key, _take_value), _KEYS: (_take_prefix,), _CANCEL: (), _PING: (),
        _LEAVE: (_take_reason,)}

    class _Session:
        def __init__(self, sock):
            self.frames = _Frames(sock)
            self.since = time.monotonic()
            self.hello = self.challenge = self.member = None
            self.leaving = False
            self.waits = {}  # id: (key, seen)
            self.held = set()

    def __init__(self, address, token, until):
        self._token = token
        self._table = {}
        self._holders = {}
        self._bytes = 0
        self._strangers = {}
        self._members = {}
        self._waiting = {}  # key: sessions
        self._closing = False
        self._selector = selectors.DefaultSelector()
        try:
            family = self._resolved(address, until)
            self._listener = socket.socket(family[0], socket.SOCK_STREAM)
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.bind(family[4])
            self._listener.listen(1024)
        except OSError as e:
            raise ResourceException(
                "rank 0: no store can be opened at %s:%d: %s; another process that has rank 0 too,"
                " or another program, may listen there" % (*address, e)) from e
        self._listener.setblocking(False)
        self.address = self._listener.getsockname()[:2]
        self._wake, self._woken = socket.socketpair()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(
            target=self._run, name=f"windlass-store-{self.address[1]}", daemon=True)
        self._thread.start()

    @staticmethod
    def _resolved(address, until):
        """Of a name, once it is known, as that of a pod is a while after its start."""
        while True:
            try:
                return socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
            except socket.gaierror:
                if until.left() < 1:
                    raise
                time.sleep(0.2)

    def close(self):
        if not self._closing:
            self._closing = True
            self._wake.send(b"x")  # the thread may have seen it before, so it leaves these two open
            self._thread.join(10)
            if not self._thread.is_alive():
                self._wake.close()
                self._woken.close()

    def _run(self):
        while not self._closing:
            for key, events in self._selector.select(0.5):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is not self._woken and key.data is not None:
                    self._serve(key.data, events)
            now = time.monotonic()
            for session in self._sessions():
                is_member = id(session) in self._members
                patience = self._SILENCE_MS / 1000 if is_member else self._PROOF_SECONDS
                if now - session.since > patience:
                    self._drop(session)
        for session in self._sessions():
            self._drop(session)
        self._listener.close()
        self._selector.close()

    def _accept(self):
        try:
            sock, _ = self._listener.accept()
        except OSError:
            time.sleep(0.01)  # for want of descriptors; strangers give theirs back in time
            return
        if len(self._strangers) >= self._STRANGERS:
            self._drop(next(iter(self._strangers.values())))
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            session = self._Session(sock)
            self._selector.register(sock, selectors.EVENT_READ, session)
        except OSError:  # it has left already, or there is no memory for it
            sock.close()
            return
        self._strangers[id(session)] = session

    def _sessions(self):
        return [*self._strangers.values(), *self._members.values()]

    def _here(self, session):
        return id(session) in self._strangers or id(session) in self._members

    def _drop(self, session):
        if not self._here(session):
            return
        self._strangers.pop(id(session), None)
        self._members.pop(id(session), None)
        self._selector.unregister(session.frames.socket)
        session.frames.socket.close()
        for number in [*session.waits]:
            self._forget(session, number)
        for key in [*session.held]:
            self._remove(key)

    def _serve(self, session, events):
        if not self._here(session):
            return
        try:
            if events & selectors.EVENT_READ:
                if not session.frames.fill():
                    self._drop(session)
                    return
                if id(session) in self._members:
                    session.since = time.monotonic()
            has_more = True
            while has_more:
                has_more = self._work(session) and session.frames.flush()
            if session.frames.flush() and session.leaving:
                self._drop(session)
            else:
                self._watch(session)
        except Exception:  # whatever a stranger sends ends its own connection alone
            self._drop(session)

    def _work(self, session):
        """Handles frames that have come whole; whether it lacked room for replies."""
        while not session.leaving and session.frames.queued < self._BACKLOG:
            try:
                body = session.frames.next()
                if body is None:
                    return False
                if id(session) in self._members:
                    self._request(session, body)
                elif session.hello is None:
                    self._hello(session, body)
                else:
                    self._prove(session, body)
            except _Malformed as e:
                if id(session) not in self._members:
                    raise
                self._end(session, e)
        return not session.leaving

    def _end(self, session, came):
        """Tells a member, and the log, why its session ends."""
        job, rank = session.member
        _log().warning("The store at %s:%d ends the session of rank %d of job %r, which sent %s",
                       *self.address, rank, _printable(job), came)
        why = _text(f"the store got {came}"[:200])
        session.frames.send(struct.pack(">Bi", InvalidArgumentException.code, _NO_CALL) + why)
        session.leaving = True

    def _watch(self, session):
        """Waits for what a session may do next."""
        reads = not session.leaving and session.frames.queued < self._BACKLOG
        events = ((selectors.EVENT_READ if reads else 0)
                  | (selectors.EVENT_WRITE if session.frames.queued else 0))
        self._selector.modify(session.frames.socket, events, session)

    def _refuse(self, session, code, text):
        session.frames.send(struct.pack(">Bi", _REFUSED, code) + _text(text))
        session.leaving = True

    def _hello(self, session, body):
        reader = _Reader(body)
        if reader.unpack("Bi") != (_HELLO, _MAGIC):
            raise _Malformed("no hello")
        protocol = reader.int()
        library = _printable(_take_text(reader, 64))
        if protocol != STORE_PROTOCOL:
            self._refuse(
                session, 2,
                f"the member has version {library}, store protocol {protocol}; the store has"
                f" version {_version()}, store protocol {STORE_PROTOCOL}; run both with one"
                " version")
            return
        reader.take(32)
        rank, size = reader.unpack("ii")
        job = _take_text(reader, 128)
        reader.end()
        if (rank, size) != (-1, 0) and not (1 <= size <= _MOST_RANKS and 0 <= rank < size):
            raise _Malformed(f"rank {rank} of {size}")
        session.member = (job, rank)
        session.hello = body
        session.challenge = bytes([_CHALLENGE]) + secrets.token_bytes(32) + _text(_version())
        session.frames.send(
            session.challenge + _proof(self._token, "server", body, session.challenge))

    def _prove(self, session, body):
        if body[0] != _PROOF or len(body) != 33:
            raise _Malformed("no proof")
        wanted = _proof(self._token, "member", session.hello, session.challenge)
        if not hmac.compare_digest(body[1:], wanted):
            self._refuse(session, 8, "the member holds another token than the store")
            return
        session.frames.met(
            _proof(self._token, "the server's frames", session.hello, session.challenge),
            _proof(self._token, "the member's frames", session.hello, session.challenge))
        if len(self._members) >= self._MEMBERS:
            self._refuse(session, 8, "the store has as many members as it takes")
            return
        same = any(other.member == session.member for other in self._members.values())
        if session.member[1] >= 0 and same:
            self._refuse(
                session, 2,
                f"rank {session.member[1]} is connected already; two may not have one rank")
            return
        del self._strangers[id(session)]
        self._members[id(session)] = session
        session.since = time.monotonic()
        session.frames.send(struct.pack(">Bq", _WELCOME, self._SILENCE_MS))

    def _request(self, session, body):
        """Reads a request whole before anything of it is done."""
        reader = _Reader(body)
        kind, number = reader.unpack("Bi")
        if kind not in self._FIELDS:
            raise _Malformed(f"a request of kind {kind}")
        fields = [read(reader) for read in self._FIELDS[kind]]
        reader.end()
        try:
            reply = self._answer(session, kind, number, fields)
        except WindlassException as e:
            session.frames.send(struct.pack(">Bi", e.code, number) + _text(str(e)[:200]))
            return
        if reply is not None:
            self._done(session, number, *reply)

    def _answer(self, session, kind, number, fields):
        """What a reply consists of; None where there is none so far."""
        if kind == _SET:
            self._put(*fields)
        elif kind == _GET:
            return self._of(self._table.get(*fields))
        elif kind == _ADD:
            return [self._add(*fields)]
        elif kind == _CAS:
            key, expected, value = fields
            same = self._table.get(key) == expected
            if same and value is not None:
                self._put(key, value)
            elif same and expected is not None:
                self._remove(key)
            return [bytes([same])]
        elif kind == _HOLD:
            key, value = fields
            free = key not in self._table
            if free:
                self._put(key, value)
                self._holders[key] = session
                session.held.add(key)
            return [bytes([free])]
        elif kind == _KEYS:
            return [self._listing(*fields)]
        elif kind == _AWAIT:
            return self._await(session, number, *fields)
        elif kind == _CANCEL:
            self._forget(session, number)
            return None
        elif kind == _LEAVE:
            _log().warning("The store at %s:%d: rank %d goes, because %s",
                           *self.address, session.member[1], _printable(*fields))
            session.leaving = True
            return None
        return []

    @staticmethod
    def _done(session, number, *reply):
        session.frames.send(struct.pack(">Bi", 0, number), *reply)

    @staticmethod
    def _of(value):
        """A value as replies have it, which share it."""
        return [struct.pack(">i", -1)] if value is None else [struct.pack(">i", len(value)), value]

    def _add(self, key, delta):
        value = self._table.get(key, bytes(8))
        if len(value) != 8:
            raise InvalidArgumentException(f"its value has {len(value)} bytes; a number has 8")
        total = (struct.unpack(">q", value)[0] + delta + (1 << 63)) % (1 << 64) - (1 << 63)
        self._put(key, struct.pack(">q", total))
        return struct.pack(">q", total)

    def _listing(self, prefix):
        found = sorted(key for key in self._table if key.startswith(prefix))
        listed = b"".join(_text(key) for key in found)
        if len(listed) > 2 * _VALUE:
            raise ResourceException("the keys that begin so are too many; ask with a longer prefix")
        return struct.pack(">i", len(found)) + listed

    def _await(self, session, number, key, seen):
        now = self._table.get(key)
        if now != seen:
            return self._of(now)
        if number in session.waits:
            raise _Malformed("two waits of one id")
        if len(session.waits) >= self._WAITS:
            raise ResourceException("this connection has as many waits as it may")
        session.waits[number] = (key, seen)
        self._waiting.setdefault(key, []).append((session, number))
        return None

    def _forget(self, session, number):
        key, _ = session.waits.pop(number, (None, None))
        others = self._waiting.get(key, [])
        if (session, number) in others:
            others.remove((session, number))
            if not others:
                del self._waiting[key]

    def _put(self, key, value):
        before = self._table.get(key)
        more = len(value) - (-(64 + 2 * len(key)) if before is None else len(before))
        if self._bytes + more > _TOTAL:
            raise ResourceException(
                f"the store has {self._bytes} of at most {_TOTAL} bytes, and this takes {more}"
                " more")
        self._table[key] = value
        self._bytes += more
        self._changed(key, value)

    def _remove(self, key):
        self._bytes -= 64 + 2 * len(key) + len(self._table.pop(key))
        holder = self._holders.pop(key, None)
        if holder is not None:
            holder.held.discard(key)
        self._changed(key, None)

    def _changed(self, key, value):
        for session, number in [*self._waiting.get(key, [])]:
            if number in session.waits and session.waits[number][1] != value:
                self._forget(session, number)
                self._done(session, number, *self._of(value))
                self._watch(session)


class _MeetingFile:
    """The file by which those meet who were given neither an address nor a token: who opens the
    store writes both into it. It lies in a folder that none but its user can enter."""

    _TEXT = re.compile(
        rb"windlass meeting 1\nstore ([0-9a-f.:]{2,45}) ([0-9]{1,5})\ntoken ([0-9a-f]{64})\n"
        rb"process ([0-9]{1,9}) ([0-9]{1,18})\n")

    def __init__(self, what, environment):
        self._process = _own_process()
        name = "\n".join([_boot_id(), str(self._process.pid_namespace), what])
        # Java's nameUUIDFromBytes: uuid3 hashes its namespace, 16 bytes of the boot id here, first.
        own = uuid.uuid3(uuid.UUID(bytes=name[:16].encode("ascii")), name[16:])
        self.path = os.path.join(self._folder(environment), f"windlass-meeting-{own}")
        self._written = None

    @staticmethod
    def _objection(path, is_folder):
        found = os.lstat(path)
        if not (stat.S_ISDIR if is_folder else stat.S_ISREG)(found.st_mode):
            return "is no %s, or a link to one" % ("folder" if is_folder else "file")
        if found.st_uid != os.geteuid():
            return f"belongs to user {found.st_uid}"
        return "is open to others than its owner" if found.st_mode & 0o077 else None

    @classmethod
    def _folder(cls, environment):
        named = environment.get("XDG_RUNTIME_DIR", "")
        with contextlib.suppress(OSError):  # it names none
            if os.path.isabs(named) and cls._objection(named, True) is None:
                return named
        own = f"/tmp/windlass-{os.geteuid()}"
        try:
            with contextlib.suppress(FileExistsError):  # another's is looked at next
                os.mkdir(own, 0o700)
            wrong = cls._objection(own, True)
        except OSError as e:
            wrong = f"can't be made or read: {e}"
        if wrong:
            raise ResourceException(
                f"{own} {wrong}; set XDG_RUNTIME_DIR to a folder of mode 700 for all who meet, or"
                " name an address and a token")
        return own

    def look(self):
        """((host, port), token) and None; or None and what the file is instead."""
        try:
            wrong = self._objection(self.path, False)
            if wrong:
                return None, wrong
            with open(os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
                text = self._TEXT.fullmatch(file.read(512))
            if not text or not 1 <= int(text[2]) <= 65535:
                return None, "says nothing that this version of Windlass can read"
            host = str(ipaddress.ip_address(text[1].decode("ascii")))
        except FileNotFoundError:
            return None, "is not there"
        except (OSError, ValueError) as e:
            return None, f"can't be read: {e}"
        if not _lives(int(text[4]), int(text[5])):
            return None, f"was left behind by process {int(text[4])}, which has ended"
        return ((host, int(text[2])), bytes.fromhex(text[3].decode("ascii"))), None

    def wait(self, until, who):
        """Where the store is, once `who` has said so."""
        for _ in until.pauses(0.001, 0.032):
            place, lack = self.look()
            if place:
                return place
        raise DeadlineExceededException(
            f"{who} has not said where to meet within {until.whole:g} s: {self.path} {lack}; see"
            " why it did not start, or give more time. A JVM without XDG_RUNTIME_DIR has its file"
            " in windlass-UID under java.io.tmpdir: where that is not /tmp, set XDG_RUNTIME_DIR to"
            " one folder of mode 700 on all sides. Where it lives on another host or in another"
            " container, or runs as another user, name an address and a token on all sides")

    def write(self, address, token):
        if self.look()[0]:
            raise ResourceException(
                f"a process starts a job of this name already, and says so in {self.path}; give"
                " each job a name of its own by WINDLASS_JOB")
        text = b"windlass meeting 1\nstore %s %d\ntoken %s\nprocess %d %d\n" % (
            address[0].encode("ascii"), address[1], token.hex().encode("ascii"),
            self._process.pid, self._process.started)
        draft = f"{self.path}.{uuid.uuid4()}"
        try:
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(text)
            os.replace(draft, self.path)
        except OSError as e:
            raise ResourceException(
                f"{self.path}: where the ranks meet can't be written: {e}") from e
        self._written = text

    def close(self):
        """Removes what this has written."""
        # A file that can't be removed is gone, or counts as absent once this process has ended.
        with contextlib.suppress(OSError), open(self.path, "rb") as file:
            if file.read(512) == self._written:
                os.remove(self.path)
        self._written = None


def _boot_id():
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def _own_process():
    process = _sized(_Process)
    _call("wl_process_self", byref(process))
    return process


def _lives(pid, started):
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            fields = file.read().rpartition(")")[2].split()
        return fields[0] not in "ZX" and int(fields[19]) == started
    except (OSError, ValueError, IndexError):
        return False


# ---- the start of a communicator ----

_NO_START = uuid.UUID(int=0)
_OPEN, _SAID, _FAILED = 0, 1, 2
_LOOK = 0.2
_LAST_LOOK = 2.0


def _peek(of, data):
    """What `of` reads, None where it can't."""
    try:
        return None if data is None else of(data)
    except (_Malformed, MismatchException):
        return None


@contextlib.contextmanager
def _reads(what, advice="", culprits=()):
    """Makes a MismatchException of bytes of other ranks that can't be read; it names `what`."""
    try:
        yield
    except _Malformed as e:
        raise MismatchException(f"{what} can't be read: {e}{advice}", culprits) from e


class _Word(collections.namedtuple("_Word", "start member step value refused")):
    """What a rank says in a step of a start: a value, or the failure that has it refuse."""

    def bytes(self):
        kind = ("Ba", 0, self.value) if self.refused is None else (
            "Biu", 1, self.refused.code, str(self.refused))
        return _packed("ggu", self.start, self.member, self.step) + _packed(*kind)

    @staticmethod
    def of(data):
        reader = _Reader(data)
        start, member, step, kind = reader.fields("gguB")
        _expect(kind <= 1, "a word of no kind")
        value = reader.array() if kind == 0 else b""
        refused = WindlassException.of(*reader.fields("iu")) if kind == 1 else None
        return _Word(start, member, step, value, refused)


class _Outcome(collections.namedtuple("_Outcome", "start step kind body")):
    """What is decided of a step for all ranks: a value, and further ones where it is long."""

    def values(self):
        parts = []
        if len(self.body) > _VALUE - 128:
            parts = [self.body[at:at + _VALUE] for at in range(0, len(self.body), _VALUE)]
        first = _packed("guBi", self.start, self.step, self.kind, len(parts))
        return [first + (b"" if parts else self.body)] + parts

    @staticmethod
    def of(first, further=lambda step, value: b""):
        reader = _Reader(first)
        start, step, kind, count = reader.fields("guBi")
        if kind > _FAILED or not 0 <= count <= _TOTAL // _VALUE:
            raise _Malformed(f"an outcome of no kind, or of {count} values")
        body = reader.rest() + b"".join(further(step, value) for value in range(1, count + 1))
        return _Outcome(start, step, kind, body)

    def failure(self):
        reader = _Reader(self.body)
        code, message = reader.fields("iv")
        return WindlassException.of(code, message, reader.ints(_MOST_RANKS))

    @staticmethod
    def failed(start, step, failure):
        ranks = failure.culprits
        body = _packed("iui", failure.code, str(failure), len(ranks))
        return _Outcome(start, step, _FAILED, body + struct.pack(f">{len(ranks)}i", *ranks))


class _Decided(Exception):
    """Another has decided, or has removed the start, while rank 0 collects."""


class _Gathering:
    """The steps by which the ranks of a start tell one another something at a store, as Java's
    class of this name does them; this process is one rank."""

    _SAID_BY_ALL = ("what ranks say at the start", "; run one version of windlass on all of them")

    def __init__(self, store, prefix, others, rank, size, until, opened=None):
        self._store, self._prefix, self._others = store, prefix, others
        self._rank, self._size, self._until = rank, size, until
        self._decisions = prefix + "decision"
        self._member = uuid.uuid4()
        self._start = None
        self._decision = opened
        self._further = []
        self._said = None
        self._seen = [None] * size
        self._heard = [None] * size
        self.hosts = None  # before it is known which ranks live on which

    @staticmethod
    def await_open(store, prefix, until):
        """Waits until rank 0 has opened a start that has not come to anything."""
        now = None
        while True:
            now = store.await_other(prefix + "decision", now, until)
            if _Gathering._is_open(now):
                return now

    @staticmethod
    def _is_open(decision):
        outcome = _peek(_Outcome.of, decision)
        return outcome is not None and outcome.kind == _OPEN

    def gather(self, step, work):
        """What `work` gives on each rank, in rank order; where it raises on one, all do."""
        value, refused = _tried(work)
        try:
            if self._start is None:
                if self._rank == 0:
                    self._open()
                else:
                    self._join(step, value)
            self._say(_Word(self._start, self._member, step, value, refused))
            outcome = self._decide(step) if self._rank == 0 else self._told()
        except WindlassException as e:
            if not self._until.over():
                raise
            outcome = self._late(step, e)
        with _reads(*self._SAID_BY_ALL):
            if outcome.kind == _FAILED:
                raise outcome.failure()
            if outcome.kind != _SAID or outcome.step != step:
                raise _Malformed(f"step {_printable(outcome.step)} in {step}")
            reader = _Reader(outcome.body)
            said = [reader.fields("ga") for _ in range(self._size)]
        if said[self._rank][0] != self._member:
            raise self._another(self._rank)
        return [value for _, value in said]

    @staticmethod
    def _another(rank):
        return MismatchException(
            f"another process has come to this start as rank {rank} too, and counts as that; two"
            " may not have one rank: start all ranks again", [rank])

    def _left(self, rank):
        return PeerLostException(
            f"rank {self._name(rank)} came to the start and left before all had met; see what its"
            " process says", [rank])

    def _name(self, rank):
        """What a rank is called, behind "rank": by its host, too, where they live on several."""
        return f"{rank}" if self.hosts is None else self.hosts.rank(rank)

    def _open(self):
        self._start = uuid.uuid4()
        opened = _Outcome(self._start, "", _OPEN, struct.pack(">i", self._size))
        self._decision = opened.values()[0]
        self._take(self._decisions, self._decision)

    def _take(self, key, data):
        """Holds a key, in place of what is left there of an earlier start."""
        while not self._store.hold(key, data, self._until):
            self._remove(key, self._until)

    def _remove(self, key, until, is_this=lambda data: True):
        data = self._store.get(key, until)
        if data is not None and is_this(data):
            self._store.compare_and_set(key, data, None, until)

    def _key(self, rank):
        return f"{self._prefix}rank/{rank}"

    def _join(self, step, value):
        now = self._decision or self._store.get(self._decisions, self._until)
        before = _peek(_Outcome.of, now)
        while not self._is_open(now):
            outcome = _peek(_Outcome.of, now)
            is_new = outcome is not None and (before is None or outcome.start != before.start)
            if is_new and outcome.kind == _FAILED:
                self._start = outcome.start  # it was opened, and has failed, while this waited
                return
            if self._said is None:
                self._say(_Word(_NO_START, self._member, step, value or b"", None))
            now = self._await_other(self._decisions, now, self._require_others)
        outcome = _Outcome.of(now)
        self._start, self._decision = outcome.start, now
        with _reads(*self._SAID_BY_ALL):
            size = _Reader(outcome.body).int()
        if size != self._size:
            why = MismatchException(
                f"rank 0 was started as one of {size} ranks, rank {self._rank} as one of"
                f" {self._size}; give all ranks one size, and all processes as many ranks",
                [0, self._rank])
            self._decided(_Outcome.failed(self._start, step, why), self._until)
            raise why

    def _say(self, word):
        data = word.bytes()
        key, before, self._said = self._key(self._rank), self._said, data
        if before is None:
            self._take(key, data)
        elif not self._store.compare_and_set(key, before, data, self._until):
            raise self._another(self._rank)

    def _is_of_this(self, said):
        return said is not None and said.start == self._start

    def _told(self):
        now = self._store.await_other(self._decisions, self._decision, self._until)
        outcome = self._outcome(now, self._until)
        if outcome is None:
            raise self._left(0)
        return outcome

    def _outcome(self, now, until):
        if not self._is_of_this(_peek(_Outcome.of, now)):
            return None

        def further(step, value):
            data = self._store.get(f"{self._prefix}of/{self._start}/{step}/{value}", until)
            if data is None:
                raise self._left(0)
            return data

        with _reads(*self._SAID_BY_ALL):
            outcome = _Outcome.of(now, further)
        self._decision = now
        return outcome

    def _await_other(self, key, seen, look):
        """A wait with a look at something else from time to time, which may raise."""
        while True:
            once = _Until(max(0.001, min(_LOOK, self._until.left())))
            try:
                return self._store.await_other(key, seen, once)
            except DeadlineExceededException:
                if self._until.over():
                    raise
                look()

    def _require_others(self):
        if self._others is not None:
            key, value = self._others
            if self._store.get(key, self._until) != value:
                raise PeerLostException("the other job gave up before they had met")

    def _require_undecided(self):
        if self._store.get(self._decisions, self._until) != self._decision:
            raise _Decided

    def _decide(self, step):
        try:
            outcome = self._decided(self._collected(step), self._until)
        except _Decided:
            outcome = self._outcome(self._store.get(self._decisions, self._until), self._until)
        if outcome is None:
            raise self._another(0)
        return outcome

    def _collected(self, step):
        said = []
        for rank in range(self._size):
            try:
                word = self._word(rank)
                if word is not None and word.step != step:
                    raise _Malformed("it is at step " + _printable(word.step))
            except _Malformed as e:
                return _Outcome.failed(self._start, step, MismatchException(
                    f"what rank {rank} says at the start can't be read: {e}; run one version of"
                    " windlass on all of them", [rank]))
            if word is None:
                return _Outcome.failed(self._start, step, self._left(rank))
            if word.refused is not None:
                return _Outcome.failed(self._start, step, self._why_refused(rank, word.refused))
            said.append(word.member.bytes + _array(word.value))
        return _Outcome(self._start, step, _SAID, b"".join(said))

    def _why_refused(self, rank, refused):
        """What `rank` says; where others have left meanwhile, that, which may be why it does."""
        with contextlib.suppress(DeadlineExceededException):  # the store doesn't say in time
            for other in range(self._size):
                is_known = self._heard[other] is not None
                if is_known and self._store.get(self._key(other), self._until) is None:
                    return self._left(other)
        return WindlassException.of(
            refused.code, f"rank {self._name(rank)}: {refused}", [rank])

    def _word(self, rank):
        """The next word of a rank, None where it has left, or another is that rank by now."""
        last = self._heard[rank]

        def look():
            if last is None:
                self._require_others()
            self._require_undecided()

        while True:
            data = self._await_other(self._key(rank), self._seen[rank], look)
            word = None if data is None else _Word.of(data)
            is_of_this = self._is_of_this(word)
            if last is not None and not (is_of_this and word.member == last.member):
                return None
            self._seen[rank] = data
            if is_of_this:
                self._heard[rank] = word
                return word

    def _decided(self, outcome, until):
        """`outcome`, or what was decided before; None where the start is there no more."""
        first, *further = outcome.values()
        for value, data in enumerate(further, 1):
            key = f"{self._prefix}of/{outcome.start}/{outcome.step}/{value}"
            self._further.append(key)
            self._store.hold(key, data, until)
        if self._store.compare_and_set(self._decisions, self._decision, first, until):
            self._decision = first
            return outcome
        return self._outcome(self._store.get(self._decisions, until), until)

    def _late(self, step, failure):
        """The outcome of a step whose deadline has passed: who has not come so far."""
        last = _Until(_LAST_LOOK)
        try:
            absent, behind = [], []
            for rank in range(self._size):
                word = _peek(_Word.of, self._store.get(self._key(rank), last))
                if word is None or word.start not in (self._start, _NO_START):
                    absent.append(rank)
                elif word.step != step:
                    behind.append(rank)
            place, culprits = self._store.address, sorted(absent + behind)
            if culprits:
                what = [f"ranks {absent} of {self._size} had not come"] if absent else []
                what += [f"ranks {behind} had not gone on with the others"] if behind else []
                text = (
                    f"{' and '.join(what)}, at {place}, when the deadline passed; see why they did"
                    " not start, or whether their processes are stopped, or give more time")
            elif self._rank == 0:
                text = (
                    f"all of {self._size} ranks came to {place} as the deadline passed; give more"
                    " time")
            else:
                culprits = [0]
                text = (
                    f"rank 0 of {self._size} came to {place}, and had not let the others go on when"
                    " the deadline passed; see whether its process is stopped")
            why = DeadlineExceededException(text, culprits)
            outcome = None
            if self._start is not None and self._decision is not None:
                outcome = self._decided(_Outcome.failed(self._start, step, why), last)
        except WindlassException as e:
            raise failure from e
        if outcome is None:
            raise why from failure
        return outcome

    def end(self, is_done):
        """Takes back what this process has said; as rank 0 once the others have heard the rest."""
        is_first = self._rank == 0 and self._start is not None
        last = _Until(_LAST_LOOK)
        with contextlib.suppress(WindlassException):  # who has not left by now finds the store gone
            if is_first and not is_done and self._is_open(self._decision):
                self._decided(_Outcome.failed(self._start, "", self._left(0)), last)
            until = self._until if is_done else last
            for rank in range(1, self._size if is_first else 0):
                seen = self._store.get(self._key(rank), until)
                while self._is_of_this(_peek(_Word.of, seen)):
                    seen = self._store.await_other(self._key(rank), seen, until)
        last = _Until(_LAST_LOOK)
        # What a store that is lost has of them ends with this way in.
        with contextlib.suppress(WindlassException):
            if self._said is not None:
                self._store.compare_and_set(self._key(self._rank), self._said, None, last)
            for key in self._further:
                self._remove(key, last)
            if is_first:
                self._remove(self._decisions, last, lambda data: self._is_of_this(
                    _peek(_Outcome.of, data)))


class _Arrival(collections.namedtuple(
        "_Arrival", "library rank target host machine named pid started pid_namespace cores cpus"
        " options")):
    """What a rank says of itself when it comes to a start."""

    _FORM = "vivuvviQQiuv"  # behind the protocol's version

    @staticmethod
    def own(rank, options, host):
        try:
            with open("/proc/self/status", encoding="ascii", errors="replace") as file:
                cpus = re.search("^Cpus_allowed_list:(.*)", file.read(), re.MULTILINE)
            boot_id = _boot_id()
        except OSError as e:
            raise UnsupportedException(f"/proc doesn't tell of this host: {e}", [rank]) from e
        process = _own_process()
        return _Arrival(
            _version(), rank, native().wl_target().decode("ascii"), boot_id, os.uname().nodename,
            host.name, process.pid, process.started, process.pid_namespace,
            native().wl_allowed_cores(), cpus[1].strip() if cpus else "", options)

    def bytes(self):
        return _packed("i" + self._FORM, START_PROTOCOL, *self)

    @staticmethod
    def of(rank, data):
        with _reads(f"what rank {rank} says of itself", culprits=[rank]):
            protocol, library = _Reader(data).fields("iv")
            if protocol != START_PROTOCOL:
                raise MismatchException(
                    f"rank {rank} runs windlass {library}, which starts by protocol {protocol};"
                    f" this one runs {_version()}, by protocol {START_PROTOCOL}; use one version"
                    " everywhere", [rank])
            _, *told = _Reader(data).fields("i" + _Arrival._FORM)
        told = _Arrival(*told)
        if told.rank != rank:
            raise MismatchException(
                f"rank {rank} says that it is rank {told.rank}; start all ranks again", [rank])
        return told

    def process(self):
        return _sized(
            _Process, pid=self.pid, started=self.started, pid_namespace=self.pid_namespace)

    def mask(self):
        mask = set()
        for part in self.cpus.split(","):
            ends = re.fullmatch("([0-9]{1,5})(?:-([0-9]{1,5}))?", part)
            if not ends or int(ends[2] or ends[1]) >= 1 << 16:
                return set()
            mask.update(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
        return mask


def _shared_cores(arrivals):
    """How many cores all share: what their masks have together, or what a quota leaves of it."""
    masks = [each.mask() for each in arrivals]
    union = set().union(*masks)
    bounded = any(each.cores < len(mask) for each, mask in zip(arrivals, masks))
    most = max(1, *(each.cores for each in arrivals))
    return most if bounded or not union else len(union)


class _Host:
    """What a process's variables say of the host that it is of, as Java's class of this name."""

    def __init__(self, variables):
        self.name = variables.get("WINDLASS_HOST") or ""
        _require(re.fullmatch("[!-~]{0,63}", self.name),
                 f"WINDLASS_HOST is '{_printable(self.name)}'; a host's name has 1 to 63 characters"
                 " of ASCII, none of them a space")
        silence = variables.get("WINDLASS_HOST_SILENCE") or "2"
        is_number = re.fullmatch("[0-9]{1,4}([.][0-9]{1,3})?", silence)
        seconds = float(silence) if is_number else -1
        _require(seconds == 0 or seconds >= 0.5,
                 f"WINDLASS_HOST_SILENCE is '{_printable(silence)}'; it must be seconds, from 0.5"
                 " to 9999.999, or 0, which lets a host be silent")
        self.silence_ns = round(seconds * 1e9)


class _Hosts:
    """Which of the ranks of a start live on one host, and can share memory, as Java's class of this
    name; hosts have numbers, from 0 on, in the order of their lowest ranks."""

    def __init__(self, arrivals):
        self.arrivals, self.numbers, self._firsts = arrivals, [], []
        known = {}
        for each in arrivals:
            place = (each.host, each.pid_namespace)
            number = known.setdefault(each.named or place, len(known))
            if number == len(self._firsts):
                self._firsts.append(each)
            first = self._firsts[number]
            if (first.host, first.pid_namespace) != place:
                raise MismatchException(
                    f"ranks {first.rank} and {each.rank} both have WINDLASS_HOST '{each.named}',"
                    " and live on different machines, or in different pid namespaces; give those of"
                    " each a name of their own, or none", [first.rank, each.rank])
            self.numbers.append(number)

    def are_several(self):
        return len(self._firsts) > 1

    def first(self, rank):
        """The one of the lowest rank of that rank's host."""
        return self._firsts[self.numbers[rank]]

    def cores(self):
        """How many cores those of any host share, at least."""
        return min(
            _shared_cores([each for each in self.arrivals if self.numbers[each.rank] == number])
            for number in range(len(self._firsts)))

    def rank(self, rank):
        """What a rank is called, behind "rank": by its host, too, where they live on several."""
        arrival = self.arrivals[rank]
        host = " on host %d (%s)" % (self.numbers[rank], arrival.named or arrival.machine)
        return "%d%s" % (rank, host if self.are_several() else "")


class Options:
    """What a communicator is to be like, the same on all ranks; defaults as Java's."""

    def __init__(self, deadline=60.0, first_sequence=1, cores=0, blocks=0, adjust_threads=False):
        self.deadline_ns = round(_Until(deadline).whole * 1e9)
        self.first_sequence = _whole("first_sequence", first_sequence)
        self.cores = _whole("cores", cores, 0)
        self.blocks = _whole("blocks", blocks, 0, _MAX_BLOCKS)
        self.adjust_threads = bool(adjust_threads)

    def text(self):
        """As Java's record has it, which ranks compare by its entries."""
        return (
            f"firstSequence={self.first_sequence}, cores={self.cores}, blocks={self.blocks},"
            f" deadline={self.deadline_ns} ns, adjustThreads={str(self.adjust_threads).lower()}")


def _start(store, prefix, others, opened, rank, size, options, host, until):
    """Meets the other ranks of a start and joins their group: this rank's `wl_comm_t*`."""
    gathering = _Gathering(store, prefix, others, rank, size, until, opened)
    is_done = False
    try:
        said = gathering.gather("arrive", lambda: _Arrival.own(rank, options.text(), host).bytes())
        arrivals = [_Arrival.of(each, data) for each, data in enumerate(said)]
        _compare(arrivals)
        gathering.hosts = _Hosts(arrivals)
        comm = _share_and_attach(gathering, rank, size, options, host)
        is_done = True
        return comm
    finally:
        gathering.end(is_done)


def _compare(arrivals):
    first = arrivals[0]
    for other in arrivals[1:]:
        what = None
        if other.library != first.library:
            what = f"run windlass {first.library} and {other.library}"
        elif other.target != first.target:
            what = f"have kernels for {first.target} and {other.target}"
        elif other.options != first.options:
            ones, others = first.options.split(", "), other.options.split(", ")
            what = "were given %s and %s; give all ranks the same options" % (
                ", ".join(each for each in ones if each not in others),
                ", ".join(each for each in others if each not in ones))
        if what:
            raise MismatchException(f"ranks 0 and {other.rank} {what}", [0, other.rank])


def _tried(step):
    """What `step` gives and None; or None and its failure."""
    try:
        return step(), None
    except WindlassException as e:
        return None, e


def _share_and_attach(gathering, rank, size, options, host):
    hosts, maker = gathering.hosts, gathering.hosts.first(rank)
    shared, group, comm = c_int32(-1), c_void_p(), c_void_p()
    wires = []

    def share():
        if rank == maker.rank:
            numbers = (c_int32 * size)(*hosts.numbers)
            config = _group_config(size, options, hosts.cores())
            config.hosts = ctypes.addressof(numbers) if hosts.are_several() else None
            _call("wl_group_share", byref(config), byref(shared))
        inode = native().wl_file_inode(shared) if shared.value >= 0 else 0
        return struct.pack(">iQ", shared.value, inode)

    def attach():
        _attach(maker, rank, number, inode, group)

    def open_wire():
        attach()
        return _open_wire(group, rank)

    def join():
        if not hosts.are_several():
            attach()
        if wires:
            lengths = (c_uint64 * len(wires))(*map(len, wires))
            _call("wl_group_connect", group, b"".join(wires), lengths, len(wires), host.silence_ns)
        _call("wl_group_join", group, rank, byref(comm))
        _watch(hosts, rank, group)
        return b""

    try:
        told = gathering.gather("share", share)[maker.rank]
        if len(told) != 12:
            raise MismatchException(
                f"what rank {maker.rank} says of the memory that all share can't be read: it has"
                f" {len(told)} bytes; run one version of windlass on all ranks", [maker.rank])
        number, inode = struct.unpack(">iQ", told)
        if hosts.are_several():
            wires += [each for each in gathering.gather("wire", open_wire) if each]
        gathering.gather("attach", join)
        return comm
    except BaseException:
        if comm:
            native().wl_comm_free(comm)
        raise
    finally:
        if group:
            native().wl_group_release(group)
        if shared.value >= 0:
            native().wl_file_close(shared)


def _group_config(size, options, cores):
    return _sized(
        _GroupConfig, ranks=size, first_sequence=options.first_sequence % (1 << 32),
        cores=options.cores or cores, deadline_ns=options.deadline_ns, blocks=options.blocks,
        adjust_threads=int(options.adjust_threads))


def _attach(maker, rank, number, inode, group):
    file = c_int32(number)
    if rank != maker.rank:
        _call("wl_file_open", byref(maker.process()), number, byref(file))
    try:
        if native().wl_file_inode(file) != inode:
            raise ResourceException(
                f"process {maker.pid} has given up this start, and has other memory by now")
        _call("wl_group_attach", file, byref(group))
    finally:
        if rank != maker.rank:
            native().wl_file_close(file)


def _open_wire(group, rank):
    """The name by which the processes of other hosts reach this one."""
    _call("wl_group_open_wire", group, (c_int32 * 1)(rank), 1)
    count = c_uint64()
    _call("wl_group_wire_name", group, None, 0, byref(count))
    name = (c_char * count.value)()
    _call("wl_group_wire_name", group, name, count.value, byref(count))
    return name.raw


def _watch(hosts, rank, group):
    """Watches the processes of the host that `rank` of this one lives on."""
    processes = {}
    for each in hosts.arrivals:
        if hosts.numbers[each.rank] == hosts.numbers[rank]:
            processes.setdefault(bytes(each.process()), []).append(each)
    processes.pop(bytes(hosts.arrivals[rank].process()))
    for each in processes.values():
        ranks = (c_int32 * len(each))(*(one.rank for one in each))
        _call("wl_group_watch", group, byref(each[0].process()), ranks, len(each), 0)


def _start_from_environment(environment, options, until):
    """This rank's `wl_comm_t*`."""
    launch = LaunchEnvironment(environment)
    native()  # where there is none, no peer is waited for
    if launch.size == 1:
        group, comm = c_void_p(), c_void_p()
        _call("wl_group_create", byref(_group_config(1, options, 0)), byref(group))
        try:
            _call("wl_group_join", group, 0, byref(comm))
        finally:
            native().wl_group_release(group)
        return comm
    variables = os.environ if environment is None else environment
    host = _Host(variables)
    address, token, file = launch.rendezvous, launch.token, None
    if address or token:
        _require(address is not None,
                 "there is a token and no place where the ranks meet; set WINDLASS_RENDEZVOUS to"
                 " HOST:PORT, such as 127.0.0.1:29500, on all of them")
        _require(token is not None,
                 "there is no token, which proves that ranks belong together; set"
                 " WINDLASS_TOKEN_FILE to a file that only you can read, of 64 hexadecimal digits"
                 " (openssl rand -hex 32)")
    elif launch.job is None:
        raise InvalidArgumentException(
            "nothing tells this job from others, by which its ranks find one another; set"
            " WINDLASS_JOB to a name of its own on all of them, or WINDLASS_RENDEZVOUS and"
            " WINDLASS_TOKEN_FILE")
    else:
        file = _MeetingFile(launch.launcher + "\n" + launch.job, variables)
        address, token = ("127.0.0.1", 0), secrets.token_bytes(32)
        if launch.rank > 0:
            address, token = file.wait(until, "rank 0")
    if launch.rank > 0 or launch.launcher_has_store:
        return _meet(launch, address, token, options, host, until)
    server = _StoreServer(address, token, until)
    try:
        if file is not None:
            address = server.address
            file.write(address, token)
        return _meet(launch, address, token, options, host, until)
    finally:
        if file is not None:
            file.close()
        server.close()


def _meet(launch, address, token, options, host, until):
    job = (launch.job or "windlass").encode("utf-8")
    name = job.decode("utf-8") if len(job) <= 128 else hashlib.sha256(job).hexdigest()
    whose, culprits = ("the launcher", []) if launch.launcher_has_store else ("rank 0", [0])
    while True:
        try:
            store = _Store(
                address, token, name, launch.rank, launch.size, until, launch.launcher_has_store)
        except (PeerLostException, DeadlineExceededException) as e:
            raise WindlassException.of(
                e.code, f"waiting for {whose}, which has the store where ranks meet: {e}",
                culprits) from e
        try:
            opened = None
            if launch.rank > 0 and not launch.launcher_has_store:
                try:
                    opened = _Gathering.await_open(store, "start/", until)
                except PeerLostException:
                    continue  # it was that of an earlier start
            arrival = _Arrival.own(launch.rank, "", host)
            store.set(f"process/{arrival.pid}/{arrival.host}", arrival.bytes(), until)
            return _start(
                store, "start/", None, opened, launch.rank, launch.size, options, host, until)
        finally:
            store.close()


# ---- tensors ----

_NUMPY = {"b1": "bool", "u1": "u8", "i1": "i8", "i2": "i16", "u2": "u16", "f2": "f16", "i4": "i32",
          "u4": "u32", "f4": "f32", "f8": "f64", "i8": "i64", "u8": "u64", "c8": "c64"}
_TORCH = {"bool": "bool", "uint8": "u8", "int8": "i8", "int16": "i16", "uint16": "u16",
          "float16": "f16", "bfloat16": "bf16", "int32": "i32", "uint32": "u32", "float32": "f32",
          "float64": "f64", "int64": "i64", "uint64": "u64", "complex64": "c64",
          "float8_e5m2": "f8e5m2", "float8_e4m3fn": "f8e4m3", "float8_e8m0fnu": "f8e8m0",
          "float8_e4m3fnuz": "f8e4m3fnuz", "float8_e5m2fnuz": "f8e5m2fnuz"}


class Tensor:
    """Memory of this process: an address, a dtype of `DTYPES`, a shape, and strides in elements.

    `owner` is what keeps the memory there; this holds it."""

    def __init__(self, address, dtype, shape, strides=None, owner=None, writable=True):
        if dtype not in DTYPES:
            raise InvalidArgumentException(f"{dtype!r} is no dtype; known: {' '.join(DTYPES)}")
        self.shape = [_whole("an extent", extent, 0, (1 << 63) - 1) for extent in shape]
        if len(self.shape) > 16:
            raise InvalidArgumentException(
                f"shape is {self.shape}; it must have at most 16 extents")
        dense = [1] * len(self.shape)
        for d in range(len(self.shape) - 2, -1, -1):
            dense[d] = dense[d + 1] * max(1, self.shape[d + 1])
        self.strides = dense if strides is None else [
            _whole("a stride", stride, 0, (1 << 63) - 1) for stride in strides]
        if len(self.strides) != len(self.shape):
            raise InvalidArgumentException(
                f"strides are {self.strides} of shape {self.shape}; there must be one for each"
                " dimension")
        self.address = _whole("address", address, 0, (1 << 64) - 1)
        self.dtype, self.owner, self.writable = dtype, owner, writable
        size = DTYPES[dtype][1]
        self.numel = math.prod(self.shape)
        last = sum((extent - 1) * stride for extent, stride in zip(self.shape, self.strides))
        self.bytes = (last + 1) * size if self.numel else 0
        self.is_contiguous = self.numel <= 1 or all(
            extent == 1 or stride == own
            for extent, stride, own in zip(self.shape, self.strides, dense))
        if self.numel and (self.address <= 0 or self.address % size):
            raise InvalidArgumentException(
                f"address is {self.address:#x}; for {dtype} it must be a multiple of {size}")

    def __repr__(self):
        return f"Tensor({self.dtype}{self.shape})"


def tensor(array, dtype=None):
    """A numpy array, a torch CPU tensor or a `Tensor` as a Tensor over the same memory.

    `dtype` names what numpy has no name for, such as bf16 in an array of uint16."""
    if isinstance(array, Tensor):
        found = array
    elif hasattr(array, "data_ptr") and hasattr(array, "stride"):
        found = _torch_tensor(array)
    elif hasattr(array, "__array_interface__"):
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(array, numpy.generic):
            raise InvalidArgumentException(
                f"a {type(array).__name__} is a value and no memory, which a result could be"
                " written to; give an array of no dimensions, numpy.array(x)")
        found = _numpy_tensor(array)
    else:
        raise InvalidArgumentException(
            f"a {type(array).__name__} is no tensor; give a numpy array, a torch CPU tensor or a"
            " windlass.Tensor")
    if dtype is None or dtype == found.dtype:
        return found
    if dtype not in DTYPES:
        raise InvalidArgumentException(f"dtype is {dtype!r}; known: {' '.join(DTYPES)}")
    if DTYPES[dtype][1] != DTYPES[found.dtype][1]:
        raise InvalidArgumentException(
            f"dtype is '{dtype}', of {DTYPES[dtype][1]} bytes, and the array has {found.dtype}, of"
            f" {DTYPES[found.dtype][1]}: dtype names what the bytes are and converts nothing; to"
            f" convert what is sent, give wire='{dtype}' to add")
    return Tensor(
        found.address, dtype, found.shape, found.strides, found.owner, found.writable)


def _view(what, array, dtype=None):
    """`tensor`, whose errors say what it is of."""
    try:
        return tensor(array, dtype)
    except WindlassException as e:
        raise WindlassException.of(e.code, f"{what}: {e}") from e


def _standing(array):
    """Where an array's elements are and what they are, as the array says; of a numpy view also
    where the array is that owns the memory."""
    if isinstance(array, Tensor):
        return array.address, array.dtype, tuple(array.shape), tuple(array.strides)
    if hasattr(array, "data_ptr"):
        return array.data_ptr(), array.dtype, tuple(array.shape), array.stride()
    interface, owner = array.__array_interface__, array
    while hasattr(getattr(owner, "base", None), "__array_interface__"):
        owner = owner.base
    memory = () if owner is array else (
        owner.__array_interface__["data"][0], getattr(owner, "nbytes", None))
    return (interface["data"][0], interface["typestr"], interface["shape"],
            interface.get("strides"), memory)


def _change(before, now):
    """What differs between two of `_standing`."""
    names = ("address", "dtype", "shape", "strides", "memory of its base")
    return ", ".join(
        "%s from %s to %s" % (name, *("contiguous" if each is None else each for each in both))
        for name, *both in zip(names, before, now) if both[0] != both[1])


def _torch_tensor(array):
    if array.device.type != "cpu" or str(array.layout) != "torch.strided":
        raise UnsupportedException(
            f"a tensor on {array.device} with layout {array.layout}; it must be strided and on the"
            " CPU")
    if array.is_conj() or getattr(array, "is_neg", lambda: False)():
        raise UnsupportedException("a tensor that is conjugated or negated lazily; clone it")
    name = str(array.dtype).rpartition(".")[2]
    if name not in _TORCH:
        is_byte = array.element_size() == 1
        hint = "; move it as bytes, as by a.view(torch.uint8), on every rank" if is_byte else ""
        raise UnsupportedException(
            f"a tensor of {array.dtype}, for which Windlass has no dtype{hint}")
    # A parameter may be given other storage; this one stays as long as it is named here.
    storage = getattr(array, "untyped_storage", array.storage)()
    return Tensor(
        array.data_ptr(), _TORCH[name], array.shape, array.stride(), (array, storage))


def _numpy_tensor(array):
    interface = array.__array_interface__
    typestr = interface["typestr"]
    order, name = typestr[0], typestr[1:]
    if order == (">" if sys.byteorder == "little" else "<"):
        raise UnsupportedException(
            f"an array of type {typestr}, whose bytes are in another order than this machine's;"
            " convert it, as by a.astype(a.dtype.newbyteorder('='))")
    if name not in _NUMPY:
        bits = re.fullmatch("[VMm]([1248])(?:\\[.*)?", name)
        hint = (f"view it as an integer of its size, a.view('u{bits[1]}'), and give its dtype"
                if bits else "convert it to numbers, as by a.astype('float32')")
        raise UnsupportedException(
            f"an array of type {typestr}, for which Windlass has no dtype; {hint}")
    if interface.get("data") is None:
        raise UnsupportedException("an array that does not say its address; copy it to numpy's")
    dtype = _NUMPY[name]
    size = DTYPES[dtype][1]
    strides = interface.get("strides")
    if strides is not None and min(strides, default=0) < 0:
        raise InvalidArgumentException(
            f"strides are {strides} bytes; none may be negative, as those of a[::-1] are: make a"
            " copy, a.copy(), and use that in its place")
    if strides is not None and any(stride % size for stride in strides):
        raise UnsupportedException(
            f"strides are {strides} bytes; each must be a multiple of the element's {size}: make a"
            " copy, a.copy(), and use that in its place")
    address, read_only = interface["data"]
    return Tensor(
        address, dtype, interface["shape"],
        None if strides is None else [stride // size for stride in strides],
        array, not read_only)


# ---- communicators ----

_KEPT = set()
"""Communicators with memory that peers may still touch after a failure."""


class _Handle:
    """A native handle. After `end`, the last call in progress frees it, or `end` itself if there
    is none. Handles that belong to it are freed first.

    Any thread and any signal handler may call each method, since none waits for another. A single
    operation of a dict is atomic. A call registers before it reads whether the handle has ended;
    `end` marks the handle before it reads the calls. So at least one of the two sees the other."""

    def __init__(self, kind, free, owner=None):
        """kind: for messages. owner: the handle that this one belongs to, and ends with."""
        self._kind, self._free, self._owner = kind, free, owner
        self._process = _process
        self._users = {}  # calls in progress, and handles that belong to this one
        self._operations = {}
        self._has_ended = False
        if owner is not None:
            owner._users[self] = None
            if owner._has_ended:
                self.end()

    def use(self, what, work):
        """Returns work(whether the handle is open). The handle stays valid meanwhile."""
        if not self.is_here():
            raise ClosedException(
                f"{what}: the {self._kind} is of process {self._process}, from which this one was"
                " forked; a process uses what it has opened itself")
        call = object()
        try:
            self._users[call] = None
            return work(not self._has_ended)
        finally:
            self._users.pop(call, None)  # comes first: a signal handler may raise after it
            self._settle()

    def operate(self, what, work):
        """Returns work(). The handle has to be open, and one such operation runs at a time."""
        call = object()

        def alone(is_open):
            try:
                self._operations[call] = None
                if [*self._operations][0] is not call:
                    raise InvalidArgumentException(
                        f"{what}: another call is in progress on this {self._kind}; one at a time"
                        " may be")
                if not is_open:
                    raise ClosedException(f"{what}: the {self._kind} was closed")
                return work()
            finally:
                self._operations.pop(call, None)

        return self.use(what, alone)

    def is_here(self):
        """Whether this process made it, and not one that this one was forked from."""
        return self._process == _process

    def end(self):
        """Refuses further calls, and frees the handle once nothing uses it. Idempotent."""
        self._has_ended = True
        for user in [*self._users]:
            if isinstance(user, _Handle):
                user.end()
        self._settle()

    def _settle(self):
        if not self._has_ended or self._users or not self.is_here():
            return
        free = vars(self).pop("_free", None)  # one caller gets it, also of several at once
        if free is not None:
            free()
            if self._owner is not None:
                self._owner._users.pop(self, None)
                self._owner._settle()


class _Scope:
    """The base of all that a `with` closes. If the `with` ends with an exception, peers of each of
    the `_communicators` get it, in the list's order; then these close in the opposite order."""

    def _leave(self, failure):
        for each in self._communicators():
            each._ended(failure)
        for each in reversed(self._communicators()):
            each._close_quietly()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.close()
        else:
            self._leave(value)


class Communicator(_Scope):
    """This process's rank of a communicator, whose other ranks are JVMs' or guests.

    One thread at a time calls an operation; abort, failure and close may come from any, and from a
    signal handler. It is of the process that made it: in one that is forked from that, close does
    nothing, and every other call raises a ClosedException."""

    def __init__(self, comm, options):
        self._comm = comm
        self._options = options
        self._handle = _Handle("communicator", self._free)
        self._held = []
        self.rank = native().wl_comm_rank(comm)
        self.size = native().wl_comm_size(comm)

    @staticmethod
    def from_environment(environment=None, deadline=60.0, options=None):
        """Collective over the ranks that a launcher started, each of which brings one.

        environment: variables, os.environ by default, that say which rank this is and where the
        others are; WINDLASS_HOST and what says how UCX reaches other hosts stand in os.environ as
        well. deadline: for all of it, in seconds."""
        until = _Until(deadline)
        options = options or Options()
        comm = Communicator(_start_from_environment(environment, options, until), options)
        try:
            comm.barrier(max(0.001, until.left()))  # behind it none finds this start's store
            return comm
        except BaseException as e:
            comm._leave(e)
            raise

    def _call(self, what, name, *arguments, on=None, holds=()):
        """One call of this rank, on its handle or another; what it touches stays until peers touch
        it no more."""
        def work():
            try:
                _call(name, self._comm if on is None else on, *arguments)
            except BaseException:
                self._held.extend(holds)
                _KEPT.add(self)
                raise

        self._handle.operate(what, work)

    def _ns(self, deadline):
        return 0 if deadline is None else _Until(deadline).ns()

    def _submit(self, what, operation, deadline_ns, holds=(), **fields):
        """One collective, of those fields of wl_call_t."""
        call = _CollectiveCall(
            struct_size=ctypes.sizeof(_CollectiveCall), operation=operation,
            deadline_ns=deadline_ns, **fields)
        self._call(what, "wl_submit", byref(call), holds=holds)

    def barrier(self, deadline=None):
        """Returns once all ranks have come."""
        self._submit("barrier", _OP_BARRIER, self._ns(deadline))

    def _collective(self, what, operation, source, target, op, root, deadline):
        for name, each in (("array", source), ("output", target)):
            if not each.is_contiguous:
                raise InvalidArgumentException(
                    f"{what}: {name}, {each!r}, has strides {each.strides} and must be contiguous;"
                    " make a copy and use that")
        self._submit(
            what, operation, self._ns(deadline), in_=source.address, in_elements=source.numel,
            out=target.address, out_elements=target.numel, dtype=DTYPES[source.dtype][0], op=op,
            root=root, holds=(source, target))

    def broadcast(self, array, root, deadline=None):
        """`array` gets what it has on the root, on every rank; of one dtype and size everywhere."""
        both = _view("broadcast: array", array)
        root = _whole("broadcast: root", root, 0, self.size - 1)
        if not both.writable and self.rank != root:
            raise InvalidArgumentException(
                f"broadcast: array, {both!r}, is read-only; it must be writable where it gets the"
                " root's")
        self._collective("broadcast", _OP_BROADCAST, both, both, 0, root, deadline)

    def all_reduce(self, array, output=None, op="sum", deadline=None):
        """`output`, `array` itself by default, gets the reduction of all ranks' arrays on every
        rank: by sum, max, min, product or avg, in ascending rank."""
        if op not in _REDUCE_OPS:
            raise InvalidArgumentException(
                f"all_reduce: op is {op!r}; known: {' '.join(_REDUCE_OPS)}")
        source = _view("all_reduce: array", array)
        target = source if output is None else _view("all_reduce: output", output)
        if not target.writable:
            raise InvalidArgumentException(
                "all_reduce: %s, %r, is read-only; it gets the result and must be writable"
                % ("array" if output is None else "output", target))
        if target.dtype != source.dtype or target.numel != source.numel:
            raise InvalidArgumentException(
                f"all_reduce: output is {target!r} and array is {source!r}; both must have one"
                " dtype and one number of elements")
        self._collective(
            "all_reduce", _OP_ALL_REDUCE, source, target, _REDUCE_OPS[op], 0, deadline)

    def split(self, color, key=None, deadline=None):
        """Collective: ranks of one color meet in a new communicator, by key, then rank; None on a
        rank whose color is negative. Both are integers of 32 bits: take a hash modulo 2**31."""
        color = _whole("split: color", color)
        key = self.rank if key is None else _whole("split: key", key)
        out = c_void_p()
        self._call("split", "wl_comm_split", color, key, self._ns(deadline), byref(out))
        return Communicator(out, self._options) if out else None

    def _again(self, until):
        return self.split(0, self.rank, until.left() + 5)

    def _words(self, operation, until, *own):
        """Collective: the words of each rank, in rank order."""
        count = len(own)
        every = (c_int64 * (count * self.size))()
        words = (c_int64 * count)(*own)
        self._submit(
            "exchange", operation, until.ns(), in_=ctypes.addressof(words), in_elements=count,
            out=ctypes.addressof(every), out_elements=len(every), dtype=DTYPES["i64"][0],
            holds=(words, every))
        return [tuple(every[rank * count:(rank + 1) * count]) for rank in range(self.size)]

    def _bytes(self, operation, until, own):
        """Collective: the bytes of each rank; ranks that say they give the same give them once."""
        most = 1 << 26
        digest = int.from_bytes(hashlib.sha256(own).digest()[:8], "big", signed=True)
        heads = self._words(operation, until, digest, len(own))
        for rank, (_, length) in enumerate(heads):
            if not 0 <= length <= most:
                raise MismatchException(
                    f"rank {rank} says that it gives {length} bytes, of at most {most}; run one"
                    " version of Windlass on all ranks", [rank])
        sender = [heads.index(head) for head in heads]
        counts = [head[1] if sender[rank] == rank else 0 for rank, head in enumerate(heads)]
        out = ctypes.create_string_buffer(max(1, sum(counts)))
        given = ctypes.create_string_buffer(own, max(1, len(own)))
        listed = (c_int64 * self.size)(*counts)
        self._submit(
            "exchange", operation, until.ns(), in_=ctypes.addressof(given),
            in_elements=counts[self.rank], out=ctypes.addressof(out), out_elements=sum(counts),
            dtype=DTYPES["u8"][0], out_counts=ctypes.addressof(listed),
            holds=(out, given, listed))
        every = _Reader(out)
        parts = [every.take(count) for count in counts]
        return [parts[rank] for rank in sender]

    def _led(self, until, step):
        """Collective: what `step` gives, as bytes, on rank 0; where it raises there, all do."""
        self.barrier(until.left() + 5)
        own, failure = _tried(lambda: b"\0" + step()) if self.rank == 0 else (b"", None)
        if failure is not None:
            own = _packed("Bi", 1, failure.code) + str(failure).encode("utf-8")
        told = _Reader(self._bytes(_OP_LINK, until.later(5), own)[0])
        if failure is not None:
            raise failure
        with _reads("what rank 0 told"):
            if told.byte() == 0:
                return told.rest()
            code = told.int()
        raise WindlassException.of(code, told.rest().decode("utf-8", "replace"))

    def _agree(self, until, here):
        """Collective: all say the same, or all raise."""
        every = self._words(_OP_LINK, until, _fingerprint(here))
        other = next((rank for rank, each in enumerate(every) if each != every[0]), None)
        if other is not None:
            texts = self._bytes(_OP_LINK, until, here.encode("utf-8"))
            raise MismatchException(
                "rank 0 %s, rank %d %s" % (
                    _printable(texts[0].decode("utf-8", "replace")), other,
                    _printable(texts[other].decode("utf-8", "replace"))), [0, other])

    def failure(self):
        """The exception that every call raises from now on; None while the communicator lives."""
        def status(is_open):
            if not is_open:
                raise ClosedException("the communicator was closed")
            _call("wl_comm_status", self._comm)

        return _tried(lambda: self._handle.use("failure", status))[1]

    def abort(self, reason):
        """Ends it for all ranks, who get an AbortedException with the reason."""
        self._stop("abort", "wl_comm_abort", reason.encode("utf-8", "replace"))

    def _fail(self, code, culprits, message):
        ranks = (c_int32 * max(1, len(culprits)))(*culprits)
        self._stop("fail", "wl_comm_fail", code, ranks, len(culprits),
                   message.encode("utf-8", "replace"))

    def _stop(self, what, name, *arguments):
        def stop(is_open):
            with contextlib.suppress(ClosedException):  # it was closed meanwhile
                if is_open:
                    _call(name, self._comm, *arguments)

        self._handle.use(what, stop)

    def close(self):
        """Leaves it; a call in progress ends with a ClosedException first. Idempotent.

        In a signal handler that has interrupted a call, that call frees the memory."""
        def leave(is_open):
            try:
                if is_open:
                    _call("wl_comm_close", self._comm)
            finally:
                self._handle.end()

        if self._handle.is_here():
            self._handle.use("close", leave)

    def _free(self):
        for _ in range(200):
            if native().wl_comm_quiescent(self._comm):
                native().wl_comm_free(self._comm)
                self._held.clear()
                _KEPT.discard(self)
                return
            time.sleep(0.01)
        # Somebody may still read what this holds: it stays as long as the process.

    def _close_quietly(self):
        with contextlib.suppress(WindlassException):  # what ended it is being raised
            self.close()

    def _ended(self, failure):
        """Peers get what this rank ends with, unless it ends as it was asked to or they know."""
        if isinstance(failure, GeneratorExit) or (
                isinstance(failure, SystemExit) and failure.code in (None, 0)):
            return
        try:
            text = f"{type(failure).__name__}: {failure}"
        except Exception:
            text = type(failure).__name__
        with contextlib.suppress(WindlassException):  # what ended it is being raised
            if self.failure() is None:
                self.abort(f"rank {self.rank} ended with {text.rstrip(': ')}")

    def _communicators(self):
        return [self]

    def __repr__(self):
        return f"Communicator(rank {self.rank} of {self.size})"


# ---- jobs ----


def _require_name(what, name):
    _require(isinstance(name, str) and name and "/" not in name and name.isprintable()
             and len(name.encode("utf-8")) <= 64,
             f"{what} is {name!r}; it must have 1 to 64 bytes of characters that print, and no"
             " slash")


def versions():
    """All that two jobs have to have alike, as Java's jobs compare it."""
    return (
        f"windlass {_version()}, ABI {ABI}, meeting protocol {MEETING_PROTOCOL}, plan"
        f" {PLAN_VERSION}, offer {OFFER_FORMAT}")


class _Announcement(collections.namedtuple(
        "_Announcement", "versions job instance pid ranks layout")):
    """What a job says of itself where it meets another."""

    _MAGIC, _FORM = 0x574C4D54, "uvuqiu"

    def bytes(self, options):
        return _packed("i" + self._FORM + "Iiiq??", self._MAGIC, *self, options.first_sequence,
                       options.cores, options.blocks, options.deadline_ns, options.adjust_threads,
                       True)

    @staticmethod
    def of(data):
        """_Malformed for what is none; MismatchException for other versions."""
        reader = _Reader(data)
        _expect(reader.int() == _Announcement._MAGIC, "it begins otherwise")
        said = reader.utf()
        if said != versions():
            raise MismatchException(
                f"the other job has {_printable(said)}; this one has {versions()}; run both with"
                " one version of Windlass")
        other = _Announcement(said, *reader.fields(_Announcement._FORM[1:]))
        _expect(1 <= other.ranks <= _MOST_RANKS, f"it has {other.ranks} ranks")
        return other

    def whose(self, first):
        last = first + self.ranks - 1
        ranks = f"rank {first} is" if first == last else f"ranks {first} to {last} are"
        return f"{ranks} job '{self.job}'"

    def __str__(self):
        return "job '%s' (%d %s, rank 0 is process %d)" % (
            self.job, self.ranks, "rank" if self.ranks == 1 else "ranks", self.pid)


class _Pairing:
    """The way of a source to the targets of its pair, at a store: what its rank 0 does, as Java's
    class of this name does it."""

    # How long it waits for a place that another job holds before it says so in the log; and before
    # it fails where that job is not one that it follows, beyond the time that the store may take to
    # let go of a job that has ended.
    _TELLS, _ENDS = 2.0, 5.0

    def __init__(self, store, pair, own, options, until):
        self._store, self._pair, self._path = store, pair, f"pair/{pair}/"
        self._own, self._until = own, until
        self._own_bytes = own.bytes(options)

    def source(self):
        """(meeting number, the target's key, its value there, its announcement as bytes)."""
        self._take_source()
        calls = None
        while True:
            path = self._path + "target/"
            for key in self._store.keys(path, self._until):
                name = key[len(path):]
                if name and "/" not in name and name.isprintable():
                    match = self._match(key)
                    if match:
                        return match
            try:
                calls = self._store.await_other(self._path + "calls", calls, self._until)
            except DeadlineExceededException as e:
                raise DeadlineExceededException(
                    f"pair '{self._pair}': no job receives it here that is not linked already, at"
                    f" the store at {self._store.address}, when the deadline passed; see whether"
                    " the other job runs, meets there by that name, with the same token where it"
                    " has one, and has the other role") from e

    def _take_source(self):
        key = self._path + "source"
        patience = self._store.silence + self._ENDS
        tells, ends, seen, told = _Until(self._TELLS), None, None, False
        while not self._store.hold(key, self._own_bytes, self._until):
            there = self._store.get(key, self._until)
            if there is None:
                continue
            holder = _peek(_Announcement.of, there)
            reason = (
                "pair '%s': another sends it already: %s; a pair has one source: name another pair,"
                " or end that job" % (self._pair, holder or "a job of another version"))
            is_final = holder is not None and holder.job != self._own.job
            if there != seen:
                seen, ends = there, _Until(patience)
            if is_final and ends.over():
                raise MismatchException(reason)
            if not told and tells.over():
                told = True
                logging.getLogger("windlass").warning(
                    "job '%s', %s; it waits for that one to end, %.3g s at most",
                    self._own.job, reason,
                    min(ends, self._until, key=_Until.left).left() if is_final
                    else self._until.left())
            first = tells if not told else ends if is_final else self._until
            try:
                self._store.await_other(key, there, min(first, self._until, key=_Until.left))
            except DeadlineExceededException as e:
                if self._until.over():
                    raise DeadlineExceededException(reason) from e
        self._store.hold(self._path + "calls", bytes(8), self._until)

    def _match(self, key):
        seen = self._store.get(key, self._until)
        # A target's meeting, 0 for none so far, and what it says.
        standing = _peek(lambda data: _Reader(data).fields("qa"), seen)
        if standing is None or standing[0] != 0:
            return None
        meeting = secrets.randbits(62) + 1
        source = f"meeting/{meeting}/source"
        self._store.hold(source, b"", self._until)
        answered = _packed("qa", meeting, standing[1]) + self._own_bytes
        if not self._store.compare_and_set(key, seen, answered, self._until):
            self._store.compare_and_set(source, b"", None, self._until)
            return None
        return meeting, key, answered, standing[1]


class Job(_Scope):
    """A job of guests as one of its ranks has it: a communicator of its own, and the way to jobs of
    JVMs, which it meets at the store that WINDLASS_MEETING names and that one of those opens."""

    _STEP = 5.0  # seconds on the way to a store, before the next one

    def __init__(self, name, communicator, environment, options, owns):
        self.name = name
        self.communicator = communicator
        self._environment = dict(os.environ if environment is None else environment)
        self._host = _Host(self._environment)
        self._options, self._owns = options, owns
        self._ranks = communicator._again(_Until(options.deadline_ns / 1e9))

    @staticmethod
    def from_environment(name, environment=None, deadline=60.0, options=None):
        """Collective over the ranks that a launcher started, all of them guests.

        name: of the job, at most 64 bytes without a slash; jobs of one pair have different names.
        options: of its communicator, and of its links."""
        _require_name("name", name)
        options = options or Options()
        communicator = Communicator.from_environment(environment, deadline, options)
        try:
            return Job(name, communicator, environment, options, True)
        except BaseException as e:
            communicator._leave(e)
            raise

    @staticmethod
    def of(name, communicator, environment=None, options=None):
        """Collective over `communicator`, all of guests, which stays the caller's to close."""
        _require_name("name", name)
        return Job(name, communicator, environment, options or Options(), False)

    def meet(self, pair, deadline=60.0):
        """Collective: meets a job that receives the pair, in whatever order they come, and gives
        the link over which this job sends. It may be called again when a link has ended."""
        _require_name("pair", pair)
        until = _Until(deadline)
        what = f"meet of pair '{pair}' as source"
        self._ranks._agree(until, f"of job '{self.name}' calls {what}")
        while True:
            link, failure = _tried(lambda: self._met(pair, until))
            again = (failure is not None and not until.over() and isinstance(
                failure, (PeerLostException, AbortedException, DeadlineExceededException)))
            standing = 0 if failure is None else 1 if again else 2
            try:
                worst = max(each[0] for each in self._ranks._words(
                    _OP_LINK, until.later(5), standing))
            except WindlassException as e:
                if link is not None:
                    link._end("meet", e)
                    link.close()
                raise failure or e
            if worst == 0:
                return link
            if link is not None:
                link.close()
            if worst == 2:
                failure = failure or AbortedException(
                    f"another rank of job '{self.name}' has failed; see what it says")
                raise WindlassException.of(
                    failure.code, f"{what}: {failure}", failure.culprits) from failure

    def _met(self, pair, until):
        ways = []  # at most one, into the store; rank 0's holds its signs
        own = _Announcement(
            versions(), self.name, str(uuid.uuid4()), os.getpid(), self._ranks.size, "")

        def match():
            address, token = self._place(until)
            store = self._connect(address, token, until)
            ways.append(store)
            meeting, key, value, other = _Pairing(store, pair, own, self._options, until).source()
            host, port = address
            return _packed("qitata", meeting, port, host, token, key, value) + other

        def way():
            with _reads("what the other job says of itself"):
                theirs = _Announcement.of(other)
            if not ways:
                ways.append(self._connect((host.decode("utf-8"), port), token, until))
            return theirs

        side = comm = None
        try:
            told = _Reader(self._ranks._led(until, match))
            with _reads("what rank 0 told"):
                meeting, port, host, token, key, value = told.fields("qiaaaa")
            other = told.rest()
            theirs, failure = _tried(way)
            codes = self._ranks._words(_OP_LINK, until.later(5), failure.code if failure else 0)
            if failure:
                raise failure
            failed = [rank for rank, each in enumerate(codes) if each[0]]
            if failed:
                raise WindlassException.of(
                    codes[failed[0]][0],
                    f"rank {failed[0]} of job '{self.name}' finds no way to the store", failed)
            side = self._ranks._again(until)
            handle = _start(
                ways[0], f"meeting/{meeting}/", (key.decode("utf-8"), value), None,
                self._ranks.rank, own.ranks + theirs.ranks, self._options, self._host, until)
            comm = Communicator(handle, self._options)
            whose = f" ({own.whose(0)}, {theirs.whose(own.ranks)})"
            layout = theirs.layout or "none"
            comm._agree(until, f"meets as '{pair}' from layout none to layout {layout}{whose}")
            link = Link(pair, whose, comm, side, own.ranks, until)
            side = comm = None
            return link
        except BaseException as e:
            if comm is not None and comm.failure() is None:
                comm.abort(f"meet failed there: {e}")
            raise
        finally:
            for each in (comm, side):
                if each is not None:
                    each._close_quietly()
            for each in ways:
                each.close()

    def _place(self, until):
        """((host, port), token) of the store where jobs meet, once one of them has it."""
        setting = self._environment.get("WINDLASS_MEETING", "")
        _require(setting,
                 "WINDLASS_MEETING is not set, and nothing else says where jobs meet; set it to one"
                 " name for all of them, such as WINDLASS_MEETING=demo, or to HOST:PORT with"
                 " WINDLASS_TOKEN_FILE")
        if "://" in setting:
            raise UnsupportedException(
                f"WINDLASS_MEETING is {setting!r}; a Python job meets at HOST:PORT or by a name")
        if ":" in setting:
            token = _token(self._environment)
            _require(token is not None,
                     "WINDLASS_MEETING is an address, and there is no token, which proves that jobs"
                     " belong together; set WINDLASS_TOKEN_FILE to one file for all of them")
            return _host_and_port("WINDLASS_MEETING", setting), token
        return _MeetingFile("jobs\n" + setting, self._environment).wait(
            until, f"a job of JVMs, which opens the store of WINDLASS_MEETING={setting},")

    def _connect(self, address, token, until):
        # One that has gone since it was found is looked for anew.
        step = _Until(max(0.001, min(self._STEP, until.left())))
        member = f"{self.name}/{uuid.uuid4()}"
        return _Store(address, token, member, self._ranks.rank, self._ranks.size, step)

    def close(self):
        """Lets go of the communicator where the job made it. Links go on. Idempotent."""
        for each in reversed(self._communicators()):
            each.close()

    def _communicators(self):
        return [self.communicator, self._ranks] if self._owns else [self._ranks]

    def __repr__(self):
        return f"Job({self.name!r}, {self.communicator!r})"


# ---- layouts ----


class _Layout:
    """What a layout string says, as Java's LayoutParser reads it: `ranks` of its mesh, row-major,
    and `dims`, the tensor dimensions that it cuts."""

    _MOST_RANKS = 1 << 20
    _DIM, _RANGE = "(?:[A-Za-z_][A-Za-z0-9_]*=)?[0-9]+", "[0-9]+(?:-[0-9]+)?"
    _PLACEMENT = r"(?:R|P(?::(?:%s))?|S[0-9]+(?:\*[0-9]+)?|SS[0-9]+/[0-9]+)" % "|".join(_REDUCE_OPS)
    _GRAMMAR = re.compile(
        r"({0}(?:x{0})*)(?:@(?:([0-9]+)|\[({1}(?:,{1})*)\]))?:({2}(?:,{2})*)".format(
            _DIM, _RANGE, _PLACEMENT))

    def __init__(self, text):
        self._text = text
        found = self._GRAMMAR.fullmatch(text) if isinstance(text, str) else None
        self._require(found, "it must be MESH:PLACEMENT,..., such as '2:S0' or 'dp=2xtp=2:R,S1'")
        grid, first, listed, placements = found.groups()
        sizes = self._sizes(grid)
        self.ranks = self._mesh(sizes, first, listed)
        placements = placements.split(",")
        self._require(len(placements) == len(sizes),
                      f"{len(placements)} placements for {len(sizes)} mesh dimensions")
        partials = {each.partition(":")[2] or "sum" for each in placements if each[0] == "P"}
        self._require(len(partials) <= 1, "partial placements of one layout have one operation")
        self._cuts = [self._cut(each) for each in placements]
        self._grid = sizes
        self.dims = [each[0] for each in self._cuts if each]

    def __str__(self):
        return self._text

    def _require(self, condition, why):
        _require(condition, f"layout {self._text!r}: {why}")

    def _number(self, what, digits, least, most):
        value = int(digits.lstrip("0")[:20] or "0")
        self._require(least <= value <= most,
                      f"{what} is {digits[:40]}; it must be from {least} to {most}")
        return value

    def _sizes(self, grid):
        dims = re.findall("(?:([A-Za-z_][A-Za-z0-9_]*)=)?([0-9]+)(?:x|$)", grid)
        names = [name for name, _ in dims if name]
        self._require(len(set(names)) == len(names),
                      "two mesh dimensions have one name; each must have its own")
        return [self._number("a mesh dimension's size", digits, 1, self._MOST_RANKS)
                for _, digits in dims]

    def _mesh(self, sizes, first, listed):
        size, most = math.prod(sizes), self._MOST_RANKS
        self._require(size <= most, f"its mesh has more than {most} ranks")
        if listed is None:
            begin = self._number("the first rank", first or "0", 0, most - size)
            return range(begin, begin + size)
        ranks = []
        for each in listed.split(","):
            low, _, high = each.partition("-")
            low = self._number("a rank", low, 0, most - 1)
            high = self._number("a rank", high, 0, most - 1) if high else low
            self._require(low <= high, f"range {low}-{high} runs backwards")
            ranks += range(low, min(high, low + size) + 1)
            if len(ranks) > size:
                break
        self._require(len(ranks) == len(set(ranks)) == size,
                      f"its list of ranks must have {size} different ones")
        return ranks

    def _cut(self, placement):
        """Of a shard (tensor dimension, unit, pieces), as Java's Cut has them; else None."""
        if placement[0] != "S":
            return None
        dim, mark, digits = re.fullmatch("SS?([0-9]+)(?:([*/])([0-9]+))?", placement).groups()
        unit = self._number("a unit", digits, 1, (1 << 63) - 1) if mark == "*" else 1
        pieces = self._number("a split", digits, 1, (1 << 31) - 1) if mark == "/" else 1
        return self._number("a tensor dimension", dim, 0, (1 << 31) - 1), unit, pieces

    def local_shape(self, shape, rank):
        """What `rank`, which the mesh has, holds of a tensor of that shape."""
        local, below, place = list(shape), len(self.ranks), self.ranks.index(rank)
        for size, cut in zip(self._grid, self._cuts):
            below //= size
            if cut:
                dim, unit, pieces = cut
                piece = -(-local[dim] // pieces) or 1
                whole, rest = divmod(local[dim], piece)
                own = place // below % size
                local[dim] = (whole * self._share(piece, unit, size, own)
                              + self._share(rest, unit, size, own))
        return local

    @staticmethod
    def _share(length, unit, parts, own):
        unit = min(unit, length) or 1
        step = -(-(-(-length // unit)) // parts) * unit
        return min((own + 1) * step, length) - min(own * step, length)


# ---- links ----


class Link(_Scope):
    """A link over which this job sends to another; its communicator has the senders' ranks first.

    When it has failed, the job may meet again. One thread at a time calls operations on it."""

    _ASKED, _CONFIRMED, _WITHDRAWN, _OFFERED, _SIGNALS = 0, 1, 2, 3, 4
    _VERSION, _LEFT_NS, _NEWEST, _WAITING, _WORDS = 0, 1, 2, 3, 4
    _FAILED, _LATE, _MOVES = 0, 1, 2
    _GRACE, _RESERVE = 2.0, 1.0

    def __init__(self, name, whose, comm, side, senders, until):
        self.name, self.communicator = name, comm
        self._whose, self._side, self._senders = whose, side, senders
        self._ticket = self._registrations = 0
        self._move_seconds = 0.0
        window = self._window = c_void_p()
        self._handle = _Handle("link", lambda: native().wl_window_free(window), comm._handle)
        self._lines = self._SIGNALS * comm.size * 64

        def create(_):
            comm._call("meet", "wl_window_create", self._lines + self._WORDS * 8, until.ns(),
                       byref(window))
            self._words = native().wl_window_address(window, comm.rank) + self._lines
            (c_int64 * self._WORDS).from_address(self._words)[:] = [-1, 0, -1, -1]

        self._handle.use("meet", create)

    def batch(self):
        """Tensors that move together."""
        return LinkBatch(self)

    def _operation(self, what):
        return f"{what} on link '{self.name}'{self._whose}"

    def _end(self, operation, failure, shared=()):
        """Unless every rank has the failure, peers get it now: the link ends."""
        if not isinstance(failure, shared) and self.communicator.failure() is None:
            self.communicator.abort(f"{operation} failed there: {failure}")

    def _side_words(self, until, *own):
        """Collective over the senders, whose failures are the link's."""
        try:
            return self._side._words(_OP_LINK_MOVE, until, *own)
        except WindlassException as e:
            if self._side.failure() is None or isinstance(e, ClosedException):
                raise
            code = AbortedException.code if isinstance(e, DeadlineExceededException) else e.code
            self.communicator._fail(code, e.culprits, f"the senders failed: {e}")
            raise self.communicator.failure() or e from e

    def _offer(self, registration, version, until):
        """Collective over the senders: waits until the receivers ask. For the move; None where they
        have not asked in time, and nothing was said."""
        every = self._side_words(until.later(self._GRACE), until.ns())
        agreed = _Until(max(1, min(each[0] for each in every)) / 1e9)
        own = (self._FAILED, 0)
        try:
            if self._side.rank == 0:
                own = self._offered(registration, version, agreed)
        except BaseException as e:
            self._end("the handover", e)
            raise
        finally:
            own = self._side_words(agreed.later(self._GRACE), *own)[0]
        if own[0] == self._FAILED:
            raise self.communicator.failure() or AbortedException(
                "rank 0 of this job has failed in it")
        return None if own[0] == self._LATE else _Until(max(1, own[1]) / 1e9)

    def _offered(self, registration, version, until):
        self._announce(version, registration)
        try:
            reserve = min(until.whole / 2, max(self._RESERVE, 2 * self._move_seconds))
            pause = 20e-6
            while until.left() > reserve:
                if self._test(self._ASKED, self._ticket + 1):
                    self._ticket += 1
                    moving = _Until(max(until.left(), self._RESERVE))
                    if self._is_confirmed(version, moving):
                        return self._MOVES, max(moving.ns(), int(self._RESERVE * 1e9))
                    pause = 20e-6
                else:
                    time.sleep(pause)
                    pause = min(2 * pause, 1e-3)
            return self._LATE, 0
        finally:
            self._announce(version, -1)

    def _is_confirmed(self, version, until):
        """Offers a version for the ticket; False where that has been, or is, withdrawn."""
        if self._test(self._WITHDRAWN, self._ticket):
            return False
        self._put(self._senders, self._VERSION, version)
        self._put(self._senders, self._LEFT_NS, until.ns())
        self._call("wl_notify", self._senders, self._line(self._OFFERED),
                   self._ticket & 0xFFFFFFFF)
        for _ in until.pauses(20e-6, 1e-3):
            if self._test(self._CONFIRMED, self._ticket):
                return True
            if self._test(self._WITHDRAWN, self._ticket):
                return False
        message = (
            f"the receivers have asked for a version, and don't answer to version {version}, which"
            f" they were offered; see whether rank {self._senders} is stopped")
        self.communicator._fail(AbortedException.code, [self._senders], message)
        raise self.communicator.failure() or AbortedException(message, [self._senders])

    def _announce(self, version, waiting):
        if self.communicator.failure() is not None:
            return  # which the call says that follows, or has said
        for rank in range(self._senders, self.communicator.size):
            self._put(rank, self._NEWEST, version)
            self._put(rank, self._WAITING, waiting)

    def _call(self, name, *arguments):
        self._handle.use("send", lambda _: self.communicator._call(
            "send", name, self._window, *arguments))

    def _line(self, signal):
        return signal * self.communicator.size * 64

    def _test(self, signal, value):
        reached = c_int32()
        self._call("wl_test", self._senders, self._line(signal), value & 0xFFFFFFFF,
                   byref(reached))
        return reached.value != 0

    def _put(self, rank, word, value):
        one, cell = (c_int64 * 1)(1), c_int64(value)

        def struct_of(address):
            return _sized(_TensorStruct, dtype=DTYPES["i64"][0], ndim=1, data=address, shape=one,
                          strides=one)

        local = struct_of(ctypes.addressof(cell))
        remote = struct_of(self._words + word * 8)
        self._call("wl_put", byref(local), rank, byref(remote))

    def close(self):
        """Leaves the link, and closes what was registered on it. Idempotent."""
        try:
            self._side.close()
        finally:
            self.communicator.close()

    def _communicators(self):
        return [self.communicator, self._side]

    def __repr__(self):
        return f"Link({self.name!r}{self._whose})"


@contextlib.contextmanager
def _operating(link, what, shared):
    """Names the operation in its failures. These end the link, but for those of a kind that every
    rank has, which `shared` lists."""
    try:
        yield
    except BaseException as e:
        operation = link._operation(what)
        link._end(operation, e, shared)
        if not isinstance(e, WindlassException):
            raise
        raise WindlassException.of(e.code, f"{operation}: {e}", e.culprits) from e


def _ranks(count, more=""):
    return "%d rank%s%s" % (count, "" if count == 1 else "s", more)


class LinkBatch:
    """Tensors of a link that are sent together. A rank adds those that it has a part of; `register`
    finds what the other job calls by the same names, and gets this rank's part of the plan."""

    _MODES = ("direct", "staged", "gather-broadcast")

    def __init__(self, link):
        self._link = link
        self._sends = []
        self._tensors = {}
        self._registered = False

    def add(self, name, shape, source, layout, dtype=None, wire=None, mode="direct",
            bucket_bytes=16 << 20, padded_shape=None):
        """Adds a tensor to send.

        name: what both sides call it. shape: of the whole tensor. source: this rank's part, as
        `tensor` takes it, kept and not copied; None where it holds nothing. layout: of the whole
        tensor over the job's ranks, such as "2:S0" or "dp=2xtp=2:R,S1". dtype: see `tensor`. wire,
        mode, bucket_bytes: the sender's choices of how it moves."""
        _require(not self._registered, "add: the batch is registered already; make another")
        _require(isinstance(name, str), f"add: name is {name!r}; it must be a string")
        what = f"add: tensor '{name}'"
        _require(name not in self._tensors, what + " was added before; add each once")
        for option, value, known in (
                ("mode", mode, self._MODES), ("wire", wire, (None, *DTYPES))):
            names = " ".join(map(str, known))
            _require(value in known, f"{what}: {option} is {value!r}; it must be one of {names}")
        shape = _whole_all(what + ": shape", shape)
        padded = shape if padded_shape is None else _whole_all(
            what + ": padded_shape", padded_shape)
        _require(len(padded) == len(shape) and all(a >= b for a, b in zip(padded, shape)),
                 f"{what}: padded_shape is {padded}; it must have as many extents as shape,"
                 f" {shape}, and none less")
        bucket_bytes = _whole(what + ": bucket_bytes", bucket_bytes, 1, (1 << 63) - 1)
        found = self._require_layout(name, shape, layout)
        bound = None if source is None else _view(f"add: source of tensor '{name}'", source, dtype)
        self._require_part(name, padded, found, bound)
        if bound is None:
            return self
        wire = wire if wire and bound.dtype in _FLOATING else ""
        self._sends.append(_packed("tttmmttq", name, bound.dtype, layout, shape, padded, wire, mode,
                                   bucket_bytes))
        self._tensors[name] = (bound, source, _standing(source))
        return self

    def _require_layout(self, name, shape, layout):
        try:
            found = _Layout(layout)
        except InvalidArgumentException as e:
            raise InvalidArgumentException(f"add: tensor '{name}': {e}") from e
        lacking = [dim for dim in found.dims if dim >= len(shape)]
        if lacking:
            raise InvalidArgumentException(
                f"add: tensor '{name}' has {len(shape)} dimensions, and layout '{layout}' cuts"
                f" dimension {lacking[0]}")
        size, highest = self._link._senders, max(found.ranks)
        named = _ranks(len(found.ranks), f" up to rank {highest}")
        _require(highest < size,
                 f"add: tensor '{name}': layout '{layout}' names {named}; this job has"
                 f" {_ranks(size)}, counted from 0")
        return found

    def _require_part(self, name, padded, layout, bound):
        """Refuses a source that is not this rank's part, which the link counts as the job does."""
        what, rank = f"add: source of tensor '{name}'", self._link.communicator.rank
        if rank not in layout.ranks:
            _require(bound is None,
                     f"{what} is {bound!r}; rank {rank} is outside the mesh of {layout} and holds"
                     " nothing: give None")
            return
        local = layout.local_shape(padded, rank)
        _require(bound is not None or 0 in local,
                 f"{what} is None; under {layout} rank {rank} holds {local}: give that")
        if bound is not None and bound.shape != local:
            raise InvalidArgumentException(
                f"{what} has shape {bound.shape}; under {layout} rank {rank} holds {local}")

    def register(self, deadline=60.0):
        """Collective over the link: a LinkTransfer.

        MismatchException on every rank where a name stands on one side alone or shapes differ,
        InvalidArgumentException where a part is not what its layout says; the link goes on."""
        _require(not self._registered, "register: the batch is registered already")
        until = _Until(deadline)
        link, comm = self._link, self._link.communicator
        self._registered = True
        shared = (MismatchException, UnsupportedException, InvalidArgumentException)
        with _operating(link, "register", shared):
            # Neither checksums, nor in place; and nothing to receive.
            offer = (struct.pack(">i??i", OFFER_FORMAT, False, False, len(self._sends))
                     + b"".join(self._sends) + struct.pack(">i", 0))
            comm._bytes(_OP_LINK_REGISTER, until, offer)
            comm._bytes(_OP_LINK_REGISTER, until, self._bindings())
            told = comm._bytes(_OP_LINK_REGISTER, until, b"")[link._senders]
            halves, words = self._table(told)
            handles = [c_void_p() for _ in range(halves)]
            transfer = LinkTransfer(
                link, link._registrations, handles,
                [(name, *each) for name, each in self._tensors.items()])

            def create(_):
                for handle in handles:
                    config, memory = _transfer_config(words)
                    comm._call("register", "wl_transfer_create", byref(config), until.ns(),
                               byref(handle), holds=(memory,))

            transfer._handle.use("register", create)
        link._registrations += 1
        return transfer

    def _bindings(self):
        """What this rank states of its memory: for each tensor its name and its binding, as the
        flat table has it."""
        out = [struct.pack(">ii", TABLE_FORMAT, len(self._tensors))]
        for name, (bound, *_) in self._tensors.items():
            binding = self._binding(bound)
            out.append(_packed("t" + "q" * len(binding), name, *binding))
        return b"".join(out)

    @staticmethod
    def _binding(bound):
        address = bound.address if bound.bytes else 0
        return (DTYPES[bound.dtype][0], len(bound.shape), address, address, bound.bytes,
                *bound.shape, *bound.strides)

    def _table(self, told):
        """What the other job's rank 0 has planned for this rank: (halves, words), checked."""
        comm, sender = self._link.communicator, self._link._senders
        with _reads(f"the part of the plan that rank {sender} has made for rank {comm.rank}",
                    "; run one version of Windlass on all ranks", [sender]):
            reader = _Reader(told)
            form = reader.int()
            _expect(form == TABLE_FORMAT, f"it has format {form}, here it is {TABLE_FORMAT}")
            if reader.byte() != 0:
                code, text = reader.int(), reader.array().decode("utf-8", "replace")
                culprits = reader.ints(comm.size)
                raise WindlassException.of(code, _printable(text), culprits)
            halves = reader.int()
            _expect(halves in (1, 2), f"a transfer of {halves} halves")
            words = None
            for _ in range(reader.int()):
                rank, count = reader.unpack("ii")
                data = reader.take(8 * count)
                if rank == comm.rank:
                    words = struct.unpack(f">{count}q", data)
            reader.end()
            _expect(words is not None, f"it has nothing for rank {comm.rank}")
            self._check(words)
            return halves, words

    def _check(self, words):
        """The table names this rank's own tensors alone, and nothing to receive into; the rest of
        it is checked where it is bound."""
        _expect(len(words) >= _HEADER, "it ends early")
        sizes = words[2:_HEADER:2]
        if any(not 0 <= size <= len(words) for size in sizes) or sum(sizes) != len(words) - _HEADER:
            raise _Malformed(f"its sections have {sizes} of {len(words) - _HEADER} words")
        counts = words[1:_HEADER:2]
        if any(not 0 <= count <= size for count, size in zip(counts, sizes)):
            raise _Malformed(f"its sections have {counts} entries in {sizes} words")
        stated = {self._binding(bound) for bound, *_ in self._tensors.values()}
        at = _HEADER
        for section, count in enumerate(counts[:2]):
            end = at + sizes[section]
            for _ in range(count):
                ndim = words[at + 1] if at + 1 < end else -1
                _expect(0 <= ndim <= 16 and at + 5 + 2 * ndim <= end, "a binding that ends early")
                binding = words[at:at + 5 + 2 * ndim]
                is_empty = binding[2:5] == (0, 0, 0)
                if not is_empty and (section == 1 or binding not in stated):
                    raise _Malformed("it names memory that this rank has not stated")
                at += 5 + 2 * ndim
            _expect(at == end, f"{end - at} words follow its bindings")


_HEADER = 9


def _transfer_config(words):
    memory = (c_int64 * max(1, len(words)))(*words)
    config = _sized(_TransferConfig, fingerprint=words[0] & (1 << 64) - 1)
    at = ctypes.addressof(memory) + 8 * _HEADER
    sections = ("source_binding", "target_binding", "chunk", "stage")
    for name, count, size in zip(sections, words[1:_HEADER:2], words[2:_HEADER:2]):
        setattr(config, name + "s", at)
        setattr(config, name + "_words", size)
        setattr(config, name + "_count", count)
        at += 8 * size
    return config, memory


class LinkTransfer(_Scope):
    """A batch that both sides have registered. Each version moves once; receivers commit it once
    all of it is there. It keeps the tensors' memory until it, or its link, is closed."""

    _SHARED = (MismatchException, VerificationFailedException)

    def __init__(self, link, number, handles, tensors):
        self._link, self._number, self._handles, self._tensors = link, number, handles, tensors
        self._next = 0
        self._handle = _Handle("transfer", self._free, link.communicator._handle)

    def send(self, version, deadline=60.0):
        """Collective over the senders: sends this rank's tensors, which may change when it returns.

        version: 0 or more, the same on every sender. DeadlineExceededException where the receivers
        have not asked for one in time: nothing moved, and the link goes on. After another failure
        but a MismatchException the link has ended."""
        _require(not isinstance(version, bool),
                 f"send: version is {version!r}; it must be an integer")
        version = _whole("send: version", version, 0, (1 << 63) - 1)
        self._handle.operate("send", lambda: self._send(version, _Until(deadline)))

    def _send(self, version, until):
        link = self._link
        what = f"send of version {version}"
        with _operating(link, what, self._SHARED):
            moving = link._offer(self._number, version, until)
        if moving is None:
            raise DeadlineExceededException(
                f"{link._operation(what)}: the receivers have not asked for a version when the"
                " deadline passed; nothing moved, and the link goes on")
        moved = self._moved()
        cell = c_int64(_NO_VERSION if moved else version)
        shared = () if moved else self._SHARED + (UnsupportedException,)
        began = time.monotonic()
        with _operating(link, what, shared):
            try:
                self._move(cell, moving)
            finally:
                if moved:
                    raise InvalidArgumentException(moved)
        link._move_seconds = time.monotonic() - began
        self._next = (self._next + 1) % len(self._handles)

    def _move(self, cell, until):
        self._link.communicator._call(
            "send", "wl_transfer_move", self._number, byref(cell), until.ns(),
            on=self._handles[self._next], holds=self._tensors)

    def _moved(self):
        """What is wrong where a tensor is no more what it was when it was added."""
        for name, _, source, before in self._tensors:
            try:
                now = _standing(source)
            except Exception as e:
                return f"tensor '{name}' can't be read any more: {e}"
            if now != before:
                return (
                    f"tensor '{name}' has changed since it was added: {_change(before, now)}; meet"
                    " again and add it as it is now, and write new values into it in place")
        return None

    def _leave(self, _):
        self.close()

    def close(self):
        """Lets go of the tensors, once a send in progress has ended. Idempotent; any thread."""
        self._handle.end()

    def _free(self):
        for handle in self._handles:
            native().wl_transfer_free(handle)
        self._tensors = []
