# SPDX-License-Identifier: Apache-2.0
"""Launch variables, tokens, and the file by which ranks of one host find each other."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import os
import re
import stat
import uuid
from ctypes import byref
from typing import Any, Mapping, Tuple

from .deadline import Deadline
from .errors import DeadlineExceededException, ResourceException, UnsupportedException, require
from .library import MOST_RANKS, Process, invoke, sized

Address = Tuple[str, int]


class LaunchEnvironment:
    """A process as the variables of its launcher describe it.

    launcher: its name. rank, size: of this process. job: name, None if there is none. token: 32
    bytes, None if there is none. rendezvous: (host, port), None if there is none.
    launcher_has_store: whether the launcher opens the store there, and not rank 0."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        """Reads `environment`, os.environ by default, as Java's class of this name does.

        Raises InvalidArgumentException if variables are missing, wrong or contradict each other,
        UnsupportedException for an address of etcd, ResourceException for a bad token file."""
        self._all = dict(os.environ if environment is None else environment)
        # A step of Slurm may have fewer tasks than its job.
        is_step = self._get("SLURM_STEP_NUM_TASKS")
        tasks = "SLURM_STEP_NUM_TASKS" if is_step else "SLURM_NTASKS"
        launchers = [
            ("WINDLASS", "WINDLASS_RANK", "WINDLASS_WORLD_SIZE"),
            ("TORCHRUN", "RANK", "WORLD_SIZE"),
            ("OPEN_MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
            ("PMIX", "PMIX_RANK", tasks),
            ("SLURM", "SLURM_PROCID", tasks),
        ]
        found = [each for each in launchers
                 if self._get(each[1]) or each[2] != tasks and self._get(each[2])]
        require(found,
                "no launcher has set its variables; start the program with torchrun, Open MPI's"
                " mpirun, srun or windlass run, or set WINDLASS_RANK, WINDLASS_WORLD_SIZE and"
                " WINDLASS_JOB")
        self.launcher, rank, size = found[0]
        self._both(rank, size)
        if self.launcher == "PMIX":
            self._one_rank(rank, "SLURM_PROCID")
        elif self.launcher == "WINDLASS" and self._get("RANK"):
            self._one_rank(rank, "RANK")
        self.size = self._number(size, 1, MOST_RANKS)
        self.rank = self._number(rank, 0, MOST_RANKS - 1)
        require(self.rank < self.size,
                f"{rank} is {self._get(rank)!r}, and {size} is {self._get(size)!r}; a rank lies"
                " below the number of ranks")
        require(self.launcher != "SLURM" or self.size == 1 or self._get("SLURM_STEP_ID"),
                "SLURM_STEP_ID is not set, as in a batch script, which is one process; start it"
                " with srun")
        self.token = token_of(self._all)
        self.rendezvous: Address | None = None
        named = self._get("WINDLASS_RENDEZVOUS")
        self.launcher_has_store = bool(named) and named == self._get("WINDLASS_LAUNCHER_STORE")
        master = None
        if named:
            require("://" not in named,
                    f"WINDLASS_RENDEZVOUS is {named!r}; a Python rank starts at HOST:PORT or by a"
                    " file", UnsupportedException)
            self.rendezvous = host_and_port("WINDLASS_RENDEZVOUS", named)
        elif self._get("MASTER_ADDR") or self._get("MASTER_PORT"):
            self._both("MASTER_ADDR", "MASTER_PORT")
            port = self._number("MASTER_PORT", 1, 65535)
            master = f"{self._get('MASTER_ADDR')}:{self._get('MASTER_PORT')}"
            # torchrun's agent may hold MASTER_PORT itself.
            if self.token:
                self.rendezvous = (self._get("MASTER_ADDR"), port + 1 if port < 65535 else port - 1)
        self.job = self._job(master)
        if self.size == 1 and self.launcher != "WINDLASS":
            self._warn_of_others(rank, size, found)

    def _warn_of_others(self, rank: str, size: str, found: Any) -> None:
        """Warns about variables of other launchers that name several ranks."""
        for name, its_rank, its_size in found[1:]:
            of, says = self._get(its_rank), self._get(its_size)
            if name != "PMIX" and of and says.isdigit() and int(says) > 1:
                logging.getLogger("windlass").warning(
                    "%s and %s say rank 0 of 1, and count; %s and %s say rank %s of %s: unset those"
                    " that are left from another start, or set WINDLASS_RANK and"
                    " WINDLASS_WORLD_SIZE", rank, size, its_rank, its_size, of, says)

    def _get(self, name: str) -> str:
        return self._all.get(name, "")

    def _both(self, one: str, other: str) -> None:
        there, missing = (one, other) if self._get(one) else (other, one)
        require(self._get(missing) or not self._get(there),
                f"{there} is {self._get(there)!r}, and {missing} is not set; set both")

    def _one_rank(self, rank: str, other: str) -> None:
        self._both(rank, other)
        require(self._get(rank) == self._get(other),
                f"{rank} is {self._get(rank)!r}, and {other} is {self._get(other)!r}: one launcher"
                " runs inside another; unset the variables of the launcher that should not count")

    def _number(self, name: str, least: int, most: int) -> int:
        text = self._get(name)
        value = int(text) if re.fullmatch("[0-9]{1,18}", text) else -1
        require(least <= value <= most,
                f"{name} is {text!r}; it must be a number from {least} to {most}")
        return value

    def _id(self, name: str) -> str:
        text = self._get(name)
        require(len(text) <= 255 and all(31 < ord(c) < 127 or ord(c) >= 160 for c in text),
                f"{name} has {len(text)} characters, or some that do not print; a job's id has at"
                " most 255 that do")
        return text

    def _job(self, master: str | None) -> str | None:
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


def token_of(environment: Mapping[str, str]) -> bytes | None:
    """Returns the token of WINDLASS_TOKEN or of the file WINDLASS_TOKEN_FILE, None for none."""
    digits = environment.get("WINDLASS_TOKEN", "")
    name = environment.get("WINDLASS_TOKEN_FILE", "")
    require(not digits or not name,
            "WINDLASS_TOKEN_FILE and WINDLASS_TOKEN are both set; unset either")
    if name:
        try:
            with open(os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                require(stat.S_ISREG(mode) and not mode & 0o077,
                        f"{name} is no regular file, or open to others than its owner; chmod"
                        " 600 it, and make a new token", ResourceException)
                digits = file.read(66).decode("ascii", "replace").strip()
        except OSError as e:
            raise ResourceException(f"{name}: a token can't be read: {e.strerror}") from e
    elif not digits:
        return None
    require(re.fullmatch("[0-9a-fA-F]{64}", digits),
            f"{name or 'WINDLASS_TOKEN'} has no token, which is 64 hexadecimal digits")
    return bytes.fromhex(digits)


def host_and_port(setting: str, text: str) -> Address:
    """Returns the address `text`, which is the value of `setting`."""
    found = re.fullmatch(r"(?:\[([^\[\]]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})", text)
    require(found and 1 <= int(found[3]) <= 65535,
            f"{setting} is {text!r}; it must be HOST:PORT, such as 127.0.0.1:29500 or [::1]:29500")
    return found[1] or found[2], int(found[3])


class RendezvousFile:
    """The file with the address and the token of a store, for processes that were given neither.

    The process that opens the store writes the file. No other user can enter its folder."""

    _TEXT = re.compile(
        rb"windlass rendezvous 2\nstore ([0-9a-f.:]{2,45}) ([0-9]{1,5})\ntoken ([0-9a-f]{64})\n"
        rb"process ([0-9]{1,9}) ([0-9]{1,18})\n")

    def __init__(self, what: str, environment: Mapping[str, str]) -> None:
        """what: tells the rendezvous from others of this user on this host."""
        self._process = own_process()
        name = "\n".join([read_boot_id(), str(self._process.pid_namespace), what])
        # Java's nameUUIDFromBytes has no namespace. uuid3 hashes its own first, here 16 bytes.
        own = uuid.uuid3(uuid.UUID(bytes=name[:16].encode("ascii")), name[16:])
        self.path = os.path.join(self._folder(environment), f"windlass-rendezvous-{own}")
        self._written: bytes | None = None

    @staticmethod
    def _objection(path: str, is_folder: bool) -> str | None:
        found = os.lstat(path)
        if not (stat.S_ISDIR if is_folder else stat.S_ISREG)(found.st_mode):
            return "is not a %s, or is a link" % ("folder" if is_folder else "file")
        if found.st_uid != os.geteuid():
            return f"belongs to user {found.st_uid}"
        return "is accessible to other users than its owner" if found.st_mode & 0o077 else None

    @classmethod
    def _folder(cls, environment: Mapping[str, str]) -> str:
        named = environment.get("XDG_RUNTIME_DIR", "")
        with contextlib.suppress(OSError):
            if os.path.isabs(named) and cls._objection(named, True) is None:
                return named
        own = f"/tmp/windlass-{os.geteuid()}"
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(own, 0o700)
            wrong = cls._objection(own, True)
        except OSError as e:
            wrong = f"can't be made or read: {e}"
        require(not wrong,
                f"{own} {wrong}; set XDG_RUNTIME_DIR to a folder of mode 700 for all of them, or"
                " name an address and a token", ResourceException)
        return own

    def _read(self) -> tuple[Any, str]:
        """Returns (address, token) and "", or None and what is wrong with the file."""
        try:
            wrong = self._objection(self.path, False)
            if wrong:
                return None, wrong
            with open(os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
                text = self._TEXT.fullmatch(file.read(512))
            if not text or not 1 <= int(text[2]) <= 65535:
                return None, "has no content that this version of Windlass can read"
            host = str(ipaddress.ip_address(text[1].decode("ascii")))
        except FileNotFoundError:
            return None, "is not there"
        except (OSError, ValueError) as e:
            return None, f"can't be read: {e}"
        if not _runs(int(text[4]), int(text[5])):
            return None, f"was left behind by process {int(text[4])}, which has ended"
        return ((host, int(text[2])), bytes.fromhex(text[3].decode("ascii"))), ""

    def wait(self, until: Deadline, who: str) -> tuple[Address, bytes]:
        """Returns the address and the token of the store once `who` has written them."""
        for _ in until.pauses(0.001, 0.032):
            found, wrong = self._read()
            if found:
                return found
        raise DeadlineExceededException(
            f"{who} has not announced the rendezvous within {until.whole:g} s: {self.path} {wrong};"
            " see why it did not start, or give more time. A JVM without XDG_RUNTIME_DIR has its"
            " file in windlass-UID under java.io.tmpdir: where that is not /tmp, set"
            " XDG_RUNTIME_DIR to one folder of mode 700 on all sides. Where it lives on another"
            " host or in another container, or runs as another user, name an address and a token on"
            " all sides")

    def write(self, address: Address, token: bytes) -> None:
        """Tells other processes the address and the token until `close`."""
        require(not self._read()[0],
                f"a process already starts a job of this name, according to {self.path}; give"
                " each job a name of its own by WINDLASS_JOB", ResourceException)
        text = b"windlass rendezvous 2\nstore %s %d\ntoken %s\nprocess %d %d\n" % (
            address[0].encode("ascii"), address[1], token.hex().encode("ascii"),
            self._process.pid, self._process.started)
        draft = f"{self.path}.{uuid.uuid4()}"
        try:
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(text)
            os.replace(draft, self.path)
        except OSError as e:
            raise ResourceException(
                f"{self.path}: the rendezvous can't be written: {e}") from e
        self._written = text

    def close(self) -> None:
        """Removes the file if this object has written it."""
        # Others ignore a file that stays, once this process has ended.
        with contextlib.suppress(OSError), open(self.path, "rb") as file:
            if file.read(512) == self._written:
                os.remove(self.path)
        self._written = None


def read_boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def own_process() -> Any:
    """Returns the Process of this process, which no other has while the host runs."""
    process = sized(Process)
    invoke("wl_process_self", byref(process))
    return process


def _runs(pid: int, started: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            fields = file.read().rpartition(")")[2].split()
        return fields[0] not in "ZX" and int(fields[19]) == started
    except (OSError, ValueError, IndexError):
        return False
