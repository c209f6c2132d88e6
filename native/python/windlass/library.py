# SPDX-License-Identifier: Apache-2.0
"""The C ABI: its constants, its structs, its functions, and the native library."""

from __future__ import annotations

import ctypes
import operator
import os
import re
from ctypes import (
    POINTER, byref, c_char, c_char_p, c_double, c_int32, c_int64, c_uint32, c_uint64, c_void_p)
from typing import Any, Iterable, Mapping

from .encoding import printable
from .errors import (
    AbortedException, InvalidArgumentException, UnsupportedException, WindlassException, require)

ABI = 17
"""Version of the C ABI that this package uses."""

MOST_RANKS = 4096
MAX_BLOCKS = 64
OP_BARRIER, OP_BROADCAST, OP_ALL_REDUCE = 1, 3, 10
OP_SEND, OP_RECEIVE = 41, 42
OP_LINK, OP_LINK_REGISTER, OP_LINK_MOVE = 23, 24, 25
NO_VERSION = -2
REDUCE_OPS = {"sum": 0, "max": 1, "min": 2, "product": 3, "avg": 4, "and": 5, "or": 6, "xor": 7}
PREMULTIPLIED_SUM = 8
"""Number in the C ABI of a sum whose terms have factors."""
DTYPES = {  # the first number in a name is its bits
    name: (code, int(re.search("[0-9]+|$", name)[0] or 8) // 8) for code, name in enumerate(
        "bool u8 i8 f8e5m2 f8e4m3 f8e8m0 i16 u16 f16 bf16 i32 u32 f32 f64 i64 u64 c64 f8e4m3fnuz"
        " f8e5m2fnuz".split())}
"""Number in the C ABI, and bytes of an element, of each dtype."""

FLOATING = {name for name in DTYPES if re.match("b?f", name)}


def _struct(**fields: Any) -> Any:
    """Returns the class of a struct of the C ABI. Its first field is its size."""

    class Struct(ctypes.Structure):
        _fields_ = [("struct_size", c_uint32), *fields.items()]

    return Struct


def sized(struct: Any, **values: Any) -> Any:
    """Returns a struct of that class with its size set."""
    return struct(struct_size=ctypes.sizeof(struct), **values)


ErrorStruct = _struct(
    code=c_int32, operation=c_int32, observer=c_int32, sequence=c_uint32, faulty_rank_count=c_int32,
    faulty_ranks=c_int32 * 64, message=c_char * 2048)
GroupConfig = _struct(
    ranks=c_int32, first_sequence=c_uint32, cores=c_int32, deadline_ns=c_int64, blocks=c_int32,
    adjust_threads=c_int32, device_cores=c_int32, hosts=c_void_p)
RankState = _struct(
    busy=c_int32, sequence=c_uint32, operation=c_int32, awaited=c_int32, closed=c_int32,
    contested=c_uint32, item_owner=c_int32, item_phase=c_int32, item=c_int32, joined=c_int32,
    lost=c_int32, former=c_int32, pid=c_int32, started=c_uint64, pid_namespace=c_uint64,
    host=c_int32, elsewhere=c_int32)
Process = _struct(pid=c_int32, started=c_uint64, pid_namespace=c_uint64)
TensorStruct = _struct(
    dtype=c_int32, ndim=c_uint32, reserved=c_uint32, data=c_void_p, shape=POINTER(c_int64),
    strides=POINTER(c_int64))
CollectiveCall = _struct(
    operation=c_int32, in_=c_void_p, in_elements=c_uint64, out=c_void_p, out_elements=c_uint64,
    dtype=c_int32, op=c_int32, algorithm=c_int32, root=c_int32, rows=c_int64, in_counts=c_void_p,
    in_offsets=c_void_p, out_counts=c_void_p, out_offsets=c_void_p, received_counts=c_void_p,
    deadline_ns=c_int64, ticket=c_void_p, stream=c_uint64, factor=c_double)
Message = _struct(
    operation=c_int32, peer=c_int32, tag=c_int32, dtype=c_int32, source=c_int32, found_tag=c_int32,
    reserved=c_int32, data=c_void_p, elements=c_uint64, received=c_uint64)
TransferConfig = _struct(
    reserved=c_uint32, fingerprint=c_uint64, source_bindings=c_void_p,
    source_binding_words=c_uint64, source_binding_count=c_uint32, target_binding_count=c_uint32,
    target_bindings=c_void_p, target_binding_words=c_uint64, chunks=c_void_p, chunk_words=c_uint64,
    chunk_count=c_uint64, stages=c_void_p, stage_words=c_uint64, stage_count=c_uint64)

_error_p = c_void_p  # of a wl_error_t
_SIGNATURES: list[tuple[Any, list[Any], str]] = [  # result, arguments, functions that have these
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
    (c_int32, [c_void_p, c_void_p, c_uint32, c_int64, _error_p], "wl_messages"),
    (c_int32, [c_void_p, c_char_p, _error_p], "wl_comm_abort"),
    (c_int32, [c_void_p, c_int32, c_void_p, c_uint32, c_char_p, _error_p], "wl_comm_fail"),
    (c_int32, [c_void_p, c_uint64, c_int64, c_void_p, _error_p], "wl_window_create"),
    (c_int32, [c_void_p, c_void_p, c_void_p, c_int32, c_void_p, _error_p], "wl_put"),
    (c_int32, [c_void_p, c_void_p, c_void_p, c_int32, c_void_p, _error_p], "wl_get"),
    (c_int32, [c_void_p, c_void_p, c_int32, c_uint64, c_uint64, _error_p], "wl_notify"),
    (c_int32, [c_void_p, c_void_p, c_int32, c_uint64, c_uint64, c_void_p, _error_p], "wl_test"),
    (c_int32, [c_void_p, c_void_p, c_int64, c_void_p, _error_p], "wl_transfer_create"),
    (c_int32, [c_void_p, c_int32, c_void_p], "wl_comm_state"),
    (c_int32, [c_void_p, c_uint64, c_void_p, c_int64, _error_p], "wl_transfer_move"),
]
_ARGUMENTS = {name: types for _, types, names in _SIGNATURES for name in names.split()}

_TARGETS = ("sim", "a2a3sim", "a5sim", "cuda", "a2a3", "a5")
_library = None


def library_path(environment: Mapping[str, str] | None = None) -> str:
    """Returns the path of the native library, as the variables of `environment` name it.

    environment: os.environ by default. WINDLASS_TARGET names the target.
    WINDLASS_LIBRARY_PATH names the folder; the default is the folder of this package.
    Raises InvalidArgumentException for an unknown target, UnsupportedException if the file is
    missing."""
    environment = os.environ if environment is None else environment
    named = environment.get("WINDLASS_TARGET") or _TARGETS[0]
    target = named.lower()
    require(target in _TARGETS,
             f'WINDLASS_TARGET is "{printable(named)}"; known are {", ".join(_TARGETS)}; name one'
             " or unset it")
    name = "libwindlass.so" if target == "sim" else f"libwindlass-{target}.so"
    folder = environment.get("WINDLASS_LIBRARY_PATH") or os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(folder, name)
    require(os.path.isfile(path),
            f"there is no {name} in {folder}; set WINDLASS_LIBRARY_PATH to the folder that has it,"
            " such as lib/ of the distribution", UnsupportedException)
    return path


def integer(what: str, value: Any, least: int = -(1 << 31), most: int = (1 << 31) - 1) -> int:
    """Returns `value` as an integer. ctypes alone would cut it to its lowest bits."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidArgumentException(f"{what} is {value!r}; it must be an integer") from None
    require(least <= number <= most,
            f"{what} is {number}; it must be an integer from {least} to {most}")
    return number


def integers(what: str, values: Iterable[Any]) -> list[int]:
    """Returns `values` as a list of extents."""
    try:
        values = list(values)
    except TypeError:
        raise InvalidArgumentException(
            f"{what} is {values!r}; it must be a sequence of integers") from None
    return [integer(f"{what}: an extent", each, 0, (1 << 63) - 1) for each in values]


def _exact(kind: Any, value: Any) -> Any:
    """Returns an argument of that type. Refuses an integer that ctypes alone would cut."""
    if kind not in (c_int32, c_int64, c_uint32, c_uint64) or isinstance(value, kind):
        return value
    exact = kind(integer("an argument", value, -(1 << 63), (1 << 64) - 1))
    require(exact.value == value, f"an argument is {value}, which does not fit {kind.__name__}")
    return exact


def native() -> Any:
    """Returns the native library, which the first call loads.

    Raises UnsupportedException if it is missing or has another ABI. Several calls may load at once:
    a lock could make a signal handler wait for the code that it interrupted."""
    global _library
    if _library is None:
        path = library_path()
        try:
            library = ctypes.CDLL(path, use_errno=False)
            # A library of another version may lack the other functions.
            version = library.wl_abi_version()
            require(version == ABI,
                    f"{path} has C ABI version {version}, this package wants {ABI}: use those of"
                    " one version", UnsupportedException)
            for result, arguments, names in _SIGNATURES:
                for function in (getattr(library, name) for name in names.split()):
                    function.restype = result
                    function.argtypes = arguments
        except (OSError, AttributeError) as e:
            raise UnsupportedException(f"{path} can't be used: {e}") from e
        _library = library
    return _library


def _error(code: int, error: Any) -> WindlassException:
    count = max(0, min(error.faulty_rank_count, 64))
    message = error.message.decode("utf-8", "replace")
    if code != AbortedException.code:  # the reason is a rank's own text
        message = re.sub(r"\ballReduce\b", "all_reduce", message)
    return WindlassException.of(code, message, error.faulty_ranks[:count])


def invoke(name: str, *arguments: Any) -> None:
    """Calls a function of the C ABI whose last argument is an error. Raises that error.

    The GIL is free during the call."""
    error = sized(ErrorStruct)
    try:
        exact = map(_exact, _ARGUMENTS[name], arguments)
        code = getattr(native(), name)(*exact, byref(error))
    except ctypes.ArgumentError as e:
        raise InvalidArgumentException(f"{name}: {e}") from None
    if code != 0:
        raise _error(code, error)


def library_version() -> str:
    return native().wl_version().decode("ascii")
