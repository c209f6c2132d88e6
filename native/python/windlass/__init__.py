# SPDX-License-Identifier: Apache-2.0
"""Windlass for Python ranks: a package over ctypes and the C ABI, for Python 3.8 and later.

A Python rank joins a communicator with the launch variables that JVM ranks read, and at the same
rendezvous. It takes part in barrier, broadcast, all-reduce and messages. A job of Python ranks
sends the versions of its tensors to a job of JVMs, which plans and gives each rank its part.
docs/reference/python.md has the protocol and the limits.

    import windlass
    with windlass.Job.from_environment("trainer") as job:
        with job.connect("policy", deadline=60) as link:
            builder = link.transfer_builder()
            builder.add("w", [4096, 1024], parameter, "tp=2:S0")
            with builder.register(deadline=60) as transfer:
                transfer.send(1, deadline=60)

Tensors are numpy arrays, torch CPU tensors, or a `Tensor` over any address; neither package is
imported here. Deadlines are seconds. Errors are exceptions with the names of Java's.
"""

from .communicator import ANY, Communicator, Received
from .errors import (
    AbortedException, ClosedException, DeadlineExceededException, DeviceException,
    InternalException, InvalidArgumentException, MismatchException, PeerLostException,
    ResourceException, UnsupportedException, VerificationFailedException, WindlassException)
from .job import Job, versions
from .launch import LaunchEnvironment
from .library import ABI, DTYPES, library_path, native
from .link import Link
from .link_transfer import LinkTransfer, LinkTransferBuilder
from .start import Options
from .tensors import Tensor, tensor

__all__ = [
    "ABI", "ANY", "AbortedException", "ClosedException", "Communicator", "DTYPES",
    "DeadlineExceededException", "DeviceException", "InternalException",
    "InvalidArgumentException", "Job", "LaunchEnvironment", "Link", "LinkTransferBuilder",
    "LinkTransfer", "MismatchException", "Options", "PeerLostException", "Received",
    "ResourceException", "Tensor", "UnsupportedException", "VerificationFailedException",
    "WindlassException", "library_path", "native", "tensor", "versions"]
