# SPDX-License-Identifier: Apache-2.0
"""The C ABI: its structs, its functions, and the native library."""

import ctypes
import operator
import os
import re
from ctypes import POINTER, byref, c_char, c_char_p, c_int32, c_int64, c_uint32, c_uint64, c_void_p

from .errors import (
    AbortedException, InvalidArgumentException, UnsupportedException, WindlassException, require)
from .encoding import printable

ABI = 13
MAX_BLOCKS = 64  # of windlass.h

MOST_RANKS = 4096
OP_BARRIER, OP_BROADCAST, OP_ALL_REDUCE = 1, 3, 10
OP_LINK, OP_LINK_REGISTER, OP_LINK_MOVE = 23, 24, 25
NO_VERSION = -2
REDUCE_OPS = {"sum": 0, "max": 1, "min": 2, "product": 3, "avg": 4}
DTYPES = {
    name: (code, size)
    for code, (name, size) in enumerate(
        [("bool", 1), ("u8", 1), ("i8", 1), ("f8e5m2", 1), ("f8e4m3", 1), ("f8e8m0", 1),
         ("i16", 2), ("u16", 2), ("f16", 2), ("bf16", 2), ("i32", 4), ("u32", 4), ("f32", 4),
         ("f64", 8), ("i64", 8), ("u64", 8), ("c64", 8), ("f8e4m3fnuz", 1), ("f8e5m2fnuz", 1)])
}
"""Each dtype's number in the C ABI, and its bytes."""

FLOATING = {name for name in DTYPES if re.match("b?f", name)}


def _struct(**fields):
    """The class of a struct of the C ABI, which begins with its size."""

    class Struct(ctypes.Structure):
        _fields_ = [("struct_size", c_uint32), *fields.items()]

    return Struct


def sized(struct, **values):
    return struct(struct_size=ctypes.sizeof(struct), **values)


ErrorStruct = _struct(
    code=c_int32, operation=c_int32, observer=c_int32, sequence=c_uint32, culprit_count=c_int32,
    culprits=c_int32 * 64, message=c_char * 2048)
GroupConfig = _struct(
    ranks=c_int32, first_sequence=c_uint32, cores=c_int32, deadline_ns=c_int64, blocks=c_int32,
    adjust_threads=c_int32, device_cores=c_int32, hosts=c_void_p)
Process = _struct(pid=c_int32, started=c_uint64, pid_namespace=c_uint64)
TensorStruct = _struct(
    dtype=c_int32, ndim=c_uint32, reserved=c_uint32, data=c_void_p, shape=POINTER(c_int64),
    strides=POINTER(c_int64))
CollectiveCall = _struct(
    operation=c_int32, in_=c_void_p, in_elements=c_uint64, out=c_void_p, out_elements=c_uint64,
    dtype=c_int32, op=c_int32, algorithm=c_int32, root=c_int32, rows=c_int64, in_counts=c_void_p,
    in_offsets=c_void_p, out_counts=c_void_p, out_offsets=c_void_p, received_counts=c_void_p,
    deadline_ns=c_int64, ticket=c_void_p, stream=c_uint64)
TransferConfig = _struct(
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


def library_path(environment=None):
    """The native library's file: in the folder WINDLASS_LIBRARY_PATH, else that of this package."""
    environment = os.environ if environment is None else environment
    named = environment.get("WINDLASS_TARGET") or _TARGETS[0]
    target = named.lower()
    require(target in _TARGETS,
             f'WINDLASS_TARGET is "{printable(named)}"; known are {", ".join(_TARGETS)}; name one'
             " or unset it")
    name = "libwindlass.so" if target == "sim" else f"libwindlass-{target}.so"
    folder = environment.get("WINDLASS_LIBRARY_PATH") or os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        raise UnsupportedException(
            f"there is no {name} in {folder}; set WINDLASS_LIBRARY_PATH to the folder that has it,"
            " such as lib/ of the distribution")
    return path


def integer(what, value, least=-(1 << 31), most=(1 << 31) - 1):
    """That integer. ctypes would take its lowest bits and say nothing."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidArgumentException(f"{what} is {value!r}; it must be an integer") from None
    if not least <= number <= most:
        raise InvalidArgumentException(
            f"{what} is {number}; it must be an integer from {least} to {most}")
    return number


def integers(what, values):
    """Those extents, as a list."""
    try:
        values = list(values)
    except TypeError:
        raise InvalidArgumentException(
            f"{what} is {values!r}; it must be a sequence of integers") from None
    return [integer(f"{what}: an extent", each, 0, (1 << 63) - 1) for each in values]


def _checked(plain, least, most):
    """The type of an argument of the C ABI that refuses what `plain` would cut to its size."""

    class Checked:
        @staticmethod
        def from_param(value):
            return value if isinstance(value, plain) else plain(
                integer("an argument", value, least, most))

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
                    f"{path} has C ABI version {version}, this package wants {ABI}: use those of"
                    " one version")
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


def invoke(name, *arguments):
    """Calls a function of the C ABI that takes an error; the GIL is free meanwhile."""
    error = sized(ErrorStruct)
    try:
        code = getattr(native(), name)(*arguments, byref(error))
    except ctypes.ArgumentError as e:
        raise InvalidArgumentException(f"{name}: {e}") from None
    if code != 0:
        raise _error(code, error)


def library_version():
    return native().wl_version().decode("ascii")
