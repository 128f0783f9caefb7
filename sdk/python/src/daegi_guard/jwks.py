"""Fetches and caches daegi's public keys (JWKS), so that checking a pass needs no call."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple

from daegi_guard.http_client import DaegiUnavailable, HttpClient
from daegi_guard.public_key import PublicKey, usable_key
from daegi_guard.steps import Steps

_LOG = logging.getLogger("daegi_guard")
_PATH = "/.well-known/jwks.json"


class KeysUnavailable(Exception):
    """No fetch has succeeded yet, so signatures cannot be verified."""


class _KeySet(NamedTuple):
    keys: Mapping[str, PublicKey]
    fetched_at: float | None


class JwksClient:
    """The keys are fetched again when they are older than ``key_ttl``, or when a pass names an unknown key id, because daegi may
    have rotated its keys."""

    def __init__(self, http: HttpClient, key_ttl: float, min_fetch_interval: float, clock: Callable[[], float]) -> None:
        self._http = http
        self._key_ttl = key_ttl
        self._min_fetch_interval = min_fetch_interval
        self._clock = clock
        self._known = _KeySet({}, None)
        self._last_fetch: float | None = None
        # Held during a fetch, so that concurrent requests share one.
        self._lock = threading.Lock()

    def find(self, kid: str) -> Steps[PublicKey | None]:
        """Returns the key with this id, or None if daegi does not publish it."""
        before = self._known
        if kid not in before.keys:
            # A fetch that runs is waited for, even if it is too recent for another one.
            needs_fetch = self._is_due() or self._lock.locked()
        else:
            # One request fetches; the others use the cached key meanwhile.
            needs_fetch = self._is_older_than(before.fetched_at, self._key_ttl) and self._is_due() and not self._lock.locked()
        if needs_fetch:
            yield self.fetch_if_due
        known = self._known
        if known.fetched_at is None:
            raise KeysUnavailable
        return known.keys.get(kid)

    def fetch_if_due(self) -> None:
        """Fetches unless the last attempt is more recent than ``min_fetch_interval``. On failure the cached keys stay valid.

        Once keys are cached, one thread fetches and the others do not wait. Otherwise passes with invented key ids would hold
        all threads of a server while daegi is slow.
        """
        if not self._lock.acquire(blocking=self._known.fetched_at is None):
            return
        try:
            if self._is_due():
                self._last_fetch = self._clock()
                self._known = _KeySet(self._fetch(), self._last_fetch)
        except DaegiUnavailable as error:
            _LOG.warning("fetching daegi's public keys failed, using cached keys: %s", error)
        finally:
            self._lock.release()

    def _fetch(self) -> Mapping[str, PublicKey]:
        published = self._http.call("GET", _PATH).get("keys")
        if not isinstance(published, list):
            raise DaegiUnavailable(f"{_PATH} did not return a key set")
        return dict(usable for usable in map(usable_key, published) if usable is not None)

    def _is_due(self) -> bool:
        return self._is_older_than(self._last_fetch, self._min_fetch_interval)

    def _is_older_than(self, since: float | None, age: float) -> bool:
        """Returns whether ``since`` is at least ``age`` away. The absolute difference covers a clock that was set back."""
        return since is None or abs(self._clock() - since) >= age
