# SPDX-License-Identifier: Apache-2.0
"""The keys of a store, their values and holders, and those who wait for changes."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping

from .encoding import packed
from .errors import ResourceException, require
from .store import TOTAL, VALUE

Seen = Mapping[str, "bytes | None"]


class Wait:
    """A wait until one of several keys has another value than now. It does not keep the values."""

    def __init__(self, keys: Iterable[str], then: Callable[[str, bytes | None], None]) -> None:
        self.keys, self.then = tuple(keys), then


class Table:
    """The content of a store. One thread at a time may call it."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[bytes, Any]] = {}  # values and holders
        self._waits: dict[str, dict[Wait, None]] = {}
        self._bytes = 0

    def get(self, key: str) -> bytes | None:
        return self._entries.get(key, (None, None))[0]

    def put(self, key: str, value: bytes, holder: Any = None) -> None:
        """Gives a key a value. A key that exists keeps its holder."""
        before, holder = self._entries.get(key, (None, holder))
        more = len(value) - (-self._cost(key) if before is None else len(before))
        require(self._bytes + more <= TOTAL,
                f"the store has {self._bytes} of at most {TOTAL} bytes, and this takes {more} more",
                ResourceException)
        self._bytes += more
        self._entries[key] = value, holder
        if value != before:
            self._changed(key, value)

    def exchange(self, key: str, expected: bytes | None, value: bytes | None) -> bool:
        """Changes a key if it has the expected value. None stands for no value."""
        now = self.get(key)
        if now != expected:
            return False
        if value is not None:
            self.put(key, value)
        elif now is not None:
            self._remove(key)
        return True

    def hold(self, key: str, value: bytes, holder: Any) -> bool:
        """Gives a key a value until `release`, if it has none."""
        if key in self._entries:
            return False
        self.put(key, value, holder)
        return True

    def release(self, holder: Any) -> None:
        """Removes the keys of a holder."""
        for key in [key for key, (_, its) in self._entries.items() if its is holder]:
            self._remove(key)

    def listing(self, prefix: str) -> bytes:
        """Returns the keys that begin with `prefix`, as a reply has them."""
        listed = packed("l", sorted(key for key in self._entries if key.startswith(prefix)))
        require(len(listed) <= 2 * VALUE,
                "the keys that begin so are too many; ask with a longer prefix", ResourceException)
        return listed

    def wait(self, seen: Seen, then: Callable[[str, bytes | None], None]) -> Wait | None:
        """Calls `then` with the first key whose value is not that in `seen`, now or once there is
        one. Returns None if it was called now."""
        for key, value in seen.items():
            if self.get(key) != value:
                then(key, self.get(key))
                return None
        wait = Wait(seen, then)
        for key in seen:
            self._waits.setdefault(key, {})[wait] = None
        return wait

    def cancel(self, wait: Wait) -> None:
        for key in wait.keys:
            self._waits[key].pop(wait)
            if not self._waits[key]:
                del self._waits[key]

    @staticmethod
    def _cost(key: str) -> int:
        return 64 + 2 * len(key)

    def _remove(self, key: str) -> None:
        value, _ = self._entries.pop(key)
        self._bytes -= self._cost(key) + len(value)
        self._changed(key, None)

    def _changed(self, key: str, value: bytes | None) -> None:
        for wait in [*self._waits.get(key, ())]:
            self.cancel(wait)
            wait.then(key, value)
