# SPDX-License-Identifier: Apache-2.0
"""Tensors: memory that this process already has, described by numpy, by torch or by an address.

This module imports neither numpy nor torch. It recognizes their arrays by their attributes.
"""

from __future__ import annotations

import math
import re
import sys
from typing import Any, Iterable

from .errors import InvalidArgumentException, UnsupportedException, WindlassException, require
from .library import DTYPES, integer

_NUMPY = {"b1": "bool", "u1": "u8", "i1": "i8", "i2": "i16", "u2": "u16", "f2": "f16", "i4": "i32",
          "u4": "u32", "f4": "f32", "f8": "f64", "i8": "i64", "u8": "u64", "c8": "c64"}
_TORCH = {"bool": "bool", "uint8": "u8", "int8": "i8", "int16": "i16", "uint16": "u16",
          "float16": "f16", "bfloat16": "bf16", "int32": "i32", "uint32": "u32", "float32": "f32",
          "float64": "f64", "int64": "i64", "uint64": "u64", "complex64": "c64",
          "float8_e5m2": "f8e5m2", "float8_e4m3fn": "f8e4m3", "float8_e8m0fnu": "f8e8m0",
          "float8_e4m3fnuz": "f8e4m3fnuz", "float8_e5m2fnuz": "f8e5m2fnuz"}


class Tensor:
    """Memory of this process: an address, a dtype, a shape, and strides in elements.

    The tensor holds `owner`, which keeps the memory valid. `numel` is the number of elements.
    `bytes` is the distance from the first byte to the end of the last element."""

    def __init__(self, address: int, dtype: str, shape: Iterable[int],
                 strides: Iterable[int] | None = None, owner: Any = None,
                 writable: bool = True) -> None:
        """Describes memory; copies nothing.

        address: of the first element, a multiple of the dtype's size. dtype: a name in `DTYPES`.
        shape: at most 16 extents. strides: one for each dimension, 0 or more; None for contiguous
        memory. Raises InvalidArgumentException if an argument is out of its range."""
        require(dtype in DTYPES, f"{dtype!r} is no dtype; known: {' '.join(DTYPES)}")
        self.shape = [integer("an extent", extent, 0, (1 << 63) - 1) for extent in shape]
        require(len(self.shape) <= 16, f"shape is {self.shape}; it must have at most 16 extents")
        dense = [math.prod(max(1, extent) for extent in self.shape[dim + 1:])
                 for dim in range(len(self.shape))]
        self.strides = dense if strides is None else [
            integer("a stride", stride, 0, (1 << 63) - 1) for stride in strides]
        require(len(self.strides) == len(self.shape),
                f"strides are {self.strides} of shape {self.shape}; there must be one for each"
                " dimension")
        self.address = integer("address", address, 0, (1 << 64) - 1)
        self.dtype, self.owner, self.writable = dtype, owner, writable
        size = DTYPES[dtype][1]
        self.numel = math.prod(self.shape)
        last = sum((extent - 1) * stride for extent, stride in zip(self.shape, self.strides))
        self.bytes = (last + 1) * size if self.numel else 0
        self.is_contiguous = self.numel == 0 or all(
            extent == 1 or stride == packed
            for extent, stride, packed in zip(self.shape, self.strides, dense))
        require(self.numel == 0 or self.address > 0 and self.address % size == 0,
                f"address is {self.address:#x}; for {dtype} it must be a multiple of {size}")

    def __repr__(self) -> str:
        return f"Tensor({self.dtype}{self.shape})"


def tensor(array: Any, dtype: str | None = None) -> Tensor:
    """Returns a Tensor over the memory of a numpy array, a torch CPU tensor or a `Tensor`.

    dtype: the meaning of the bytes where numpy has no name for it, such as "bf16" for an array of
    uint16. Raises InvalidArgumentException or UnsupportedException if the memory can't be used."""
    if isinstance(array, Tensor):
        found = array
    elif hasattr(array, "data_ptr") and hasattr(array, "stride"):
        found = _torch_tensor(array)
    elif hasattr(array, "__array_interface__"):
        found = _numpy_tensor(array)
    else:
        raise InvalidArgumentException(
            f"a {type(array).__name__} is no tensor; give a numpy array, a torch CPU tensor or a"
            " windlass.Tensor")
    if dtype is None or dtype == found.dtype:
        return found
    require(dtype in DTYPES, f"dtype is {dtype!r}; known: {' '.join(DTYPES)}")
    size, own = DTYPES[dtype][1], DTYPES[found.dtype][1]
    require(size == own,
            f"dtype is '{dtype}', of {size} bytes, and the array has {found.dtype}, of {own}: dtype"
            " names what the bytes are and converts nothing; to convert what is sent, give"
            f" wire='{dtype}' to add")
    return Tensor(found.address, dtype, found.shape, found.strides, found.owner, found.writable)


def view(what: str, array: Any, dtype: str | None = None) -> Tensor:
    """Returns `tensor(array, dtype)`. Its errors begin with `what`."""
    try:
        return tensor(array, dtype)
    except WindlassException as e:
        raise WindlassException.of(e.code, f"{what}: {e}") from e


def _torch_tensor(array: Any) -> Tensor:
    require(array.device.type == "cpu" and str(array.layout) == "torch.strided",
            f"a tensor on {array.device} with layout {array.layout}; it must be strided and on the"
            " CPU", UnsupportedException)
    if array.is_conj() or getattr(array, "is_neg", lambda: False)():
        raise UnsupportedException("a tensor that is conjugated or negated lazily; clone it")
    name = str(array.dtype).rpartition(".")[2]
    if name not in _TORCH:
        is_byte = array.element_size() == 1
        hint = "; move it as bytes, as by a.view(torch.uint8), on every rank" if is_byte else ""
        raise UnsupportedException(
            f"a tensor of {array.dtype}, for which Windlass has no dtype{hint}")
    # torch may give the tensor other storage later. The owner keeps the present storage valid.
    storage = getattr(array, "untyped_storage", array.storage)()
    return Tensor(array.data_ptr(), _TORCH[name], array.shape, array.stride(), (array, storage))


def _numpy_tensor(array: Any) -> Tensor:
    numpy = sys.modules.get("numpy")
    require(numpy is None or not isinstance(array, numpy.generic),
            f"a {type(array).__name__} is a value and no memory, which a result could be written"
            " to; give an array of no dimensions, numpy.array(x)")
    interface = array.__array_interface__
    typestr, strides = interface["typestr"], interface.get("strides")
    order, name = typestr[0], typestr[1:]
    require(order != (">" if sys.byteorder == "little" else "<"),
            f"an array of type {typestr}, whose bytes are in another order than this machine's;"
            " convert it, as by a.astype(a.dtype.newbyteorder('='))", UnsupportedException)
    if name not in _NUMPY:
        bits = re.fullmatch("[VMm]([1248])(?:\\[.*)?", name)
        hint = (f"view it as an integer of its size, a.view('u{bits[1]}'), and give its dtype"
                if bits else "convert it to numbers, as by a.astype('float32')")
        raise UnsupportedException(
            f"an array of type {typestr}, for which Windlass has no dtype; {hint}")
    if interface.get("data") is None:
        raise UnsupportedException("an array without an address; copy it to one of numpy's")
    dtype, (address, read_only) = _NUMPY[name], interface["data"]
    if strides is not None:
        size = DTYPES[dtype][1]
        copy = "make a copy, a.copy(), and use that in its place"
        require(min(strides, default=0) >= 0,
                f"strides are {strides} bytes; none may be negative, as those of a[::-1] are:"
                f" {copy}")
        require(not any(stride % size for stride in strides),
                f"strides are {strides} bytes; each must be a multiple of the element's {size}:"
                f" {copy}", UnsupportedException)
        strides = [stride // size for stride in strides]
    return Tensor(address, dtype, interface["shape"], strides, array, not read_only)


def memory_of(array: Any) -> tuple:
    """Returns the address, dtype, shape and strides that an array states now.

    For a numpy view the result also has the memory of the array that owns it."""
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


def describe_change(before: tuple, now: tuple) -> str:
    """Returns the differences between two results of `memory_of`, in words."""
    names = ("address", "dtype", "shape", "strides", "memory of its base")
    return ", ".join(
        "%s from %s to %s" % (name, *("contiguous" if each is None else each for each in both))
        for name, *both in zip(names, before, now) if both[0] != both[1])
