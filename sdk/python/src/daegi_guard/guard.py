"""The guard: accepts only users admitted by the waiting room."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from daegi_guard.claims import Entry, key_id, read_entry
from daegi_guard.http_client import DaegiUnavailable, HttpClient
from daegi_guard.jwks import JwksClient, KeysUnavailable
from daegi_guard.pass_source import PassSource, pass_cookie
from daegi_guard.refusal import Refusal, RefusalCode
from daegi_guard.steps import BlockingCall, Steps, run, run_async

_LOG = logging.getLogger("daegi_guard")
T = TypeVar("T")


class OnUnavailable(Enum):
    """What a guard does while daegi is unreachable and the guard needs it: for the keys, until the first successful fetch, or for
    an online check."""

    FAIL_CLOSED = "failClosed"
    """Refuses requests that could not be checked, with 503."""
    FAIL_OPEN = "failOpen"
    """Accepts any well-formed, unexpired pass without verifying its signature or revocation."""


@dataclass(frozen=True)
class Authorization:
    """The outcome of an authorized request."""

    entry: Entry
    """The entry of the chosen pass."""
    keep: str | None
    """The chosen pass if it came with the URL: the response must set the guard's cookie to it."""


@dataclass(frozen=True)
class _Candidate:
    """One of two passes of a request, checked offline."""

    text: str
    keep: str | None
    result: Entry | Refusal

    def is_preferred_over(self, in_url: _Candidate) -> bool:
        """Returns whether this pass, of a cookie, is preferred over the one in the URL."""
        if isinstance(self.result, Refusal) or isinstance(in_url.result, Refusal):
            return not isinstance(self.result, Refusal)
        return self.result.user_id != in_url.result.user_id or in_url.result.expires_at <= self.result.expires_at


class Guard:
    """Accepts only users admitted by the waiting room. One per process is enough: it caches daegi's keys.

    ``check``, ``authorize`` and ``complete`` block their thread while they call daegi; ``acheck``, ``aauthorize`` and ``acomplete``
    do the same in an event loop, where calls run in threads of its default executor. All are safe for threads.
    """

    def __init__(
        self,
        public_url: str,
        *,
        browser_url: str | None = None,
        internal_url: str | None = None,
        online: bool = False,
        on_unavailable: OnUnavailable = OnUnavailable.FAIL_CLOSED,
        clock_skew: float = 5,
        key_ttl: float = 300,
        min_fetch_interval: float = 5,
        timeout: float = 2,
        ssl_context: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Creates a guard. The first pass triggers the first fetch of keys.

        :param public_url: daegi's public URL as this service reaches it; the keys are fetched from it
        :param browser_url: the same, as browsers reach it, for redirects to the waiting page; default: ``public_url``
        :param internal_url: daegi's internal URL, required to complete entries and to check online
        :param online: also checks with daegi, for each request, that the entry has not ended
        :param on_unavailable: what to do while daegi is unreachable
        :param clock_skew: tolerated difference between the clocks of daegi and this service, in seconds
        :param key_ttl: age in seconds at which keys are fetched again
        :param min_fetch_interval: minimum seconds between two fetches of keys, whatever key ids passes name
        :param timeout: seconds that a call to daegi waits for the network
        :param ssl_context: own certificates for calls to daegi
        :param clock: returns the time in seconds since the Unix epoch
        """
        if online and internal_url is None:
            raise ValueError("internal_url is not configured; it is required to check online")
        self._browser_url = (browser_url or public_url).rstrip("/")
        self._online = online
        self._on_unavailable = on_unavailable
        self._clock_skew = clock_skew
        self._clock = clock
        public = HttpClient(public_url.rstrip("/"), timeout, ssl_context)
        self._keys = JwksClient(public, key_ttl, min_fetch_interval, clock)
        self._internal = None if internal_url is None else HttpClient(internal_url.rstrip("/"), timeout, ssl_context)
        self._fetching: asyncio.Task[None] | None = None

    def check(self, item: str, text: str) -> Entry:
        """Checks a pass for ``item``. Raises ``Refusal`` if the pass is refused."""
        return run(self._check(item, text))

    async def acheck(self, item: str, text: str) -> Entry:
        """Checks a pass for ``item``. Raises ``Refusal`` if the pass is refused."""
        return await self._run_async(self._check(item, text))

    def authorize(self, item: str, source: PassSource) -> Authorization:
        """Checks a request for ``item`` and chooses between its passes. Raises ``Refusal`` if none is valid.

        A browser may send two, one in its cookie and one in the URL. A link must neither sign a user out nor replace them by
        another user. Therefore a valid cookie wins unless the URL carries a pass of the same user that expires later. A pass
        that was not chosen is not stored. If both are refused, the refusal is that of the URL.
        """
        return run(self._authorize(item, source))

    async def aauthorize(self, item: str, source: PassSource) -> Authorization:
        """Does the same as ``authorize`` in an event loop."""
        return await self._run_async(self._authorize(item, source))

    def complete(self, entry: Entry) -> bool:
        """Ends an entry, for example after the order was placed, so that daegi can admit the next user.

        Idempotent; returns whether this call ended the entry. Raises ``DaegiUnavailable`` if daegi is unreachable; the entry then
        ends when the pass expires.
        """
        return self._call_internal(entry.item_id, "complete", {"token": entry.token}).get("released") is True

    async def acomplete(self, entry: Entry) -> bool:
        """Does the same as ``complete`` in an event loop."""
        return await asyncio.to_thread(self.complete, entry)

    def try_complete(self, entry: Entry) -> None:
        """Completes an entry. Logs a failure instead of raising, because the response must not change: the entry expires."""
        try:
            self.complete(entry)
        except DaegiUnavailable as error:
            _LOG.warning("entry not completed, it ends when its pass expires: %s", error)

    def waiting_page(self, item: str) -> str:
        """Returns the URL of the item's waiting page."""
        return f"{self._browser_url}/wait/{item}"

    def cookie(self, authorization: Authorization) -> str | None:
        """Returns the ``Set-Cookie`` header for an authorized request, or None if it needs none."""
        if authorization.keep is None:
            return None
        return pass_cookie(authorization.entry, authorization.keep, self._now(), self._browser_url.startswith("https:"))

    @property
    def can_complete(self) -> bool:
        """Whether the guard has an internal URL."""
        return self._internal is not None

    def _check(self, item: str, text: str) -> Steps[Entry]:
        entry = yield from self._read(item, text)
        yield from self._confirm(item, text)
        return entry

    def _authorize(self, item: str, source: PassSource) -> Steps[Authorization]:
        if not source.in_url or not source.stored:
            entry = yield from self._check(item, source.first)
            return Authorization(entry, source.in_url or None)
        in_url = yield from self._candidate(item, source.in_url, keep=source.in_url)
        stored = yield from self._candidate(item, source.stored, keep=None)
        first, second = (stored, in_url) if stored.is_preferred_over(in_url) else (in_url, stored)
        try:
            return (yield from self._confirmed(item, first))
        except Refusal as refusal:
            if refusal.code is not RefusalCode.PASS_REVOKED or isinstance(second.result, Refusal):
                raise
        # The first pass was revoked.
        return (yield from self._confirmed(item, second))

    def _candidate(self, item: str, text: str, keep: str | None) -> Steps[_Candidate]:
        try:
            entry = yield from self._read(item, text)
            return _Candidate(text, keep, entry)
        except Refusal as refusal:
            return _Candidate(text, keep, refusal)

    def _confirmed(self, item: str, candidate: _Candidate) -> Steps[Authorization]:
        if isinstance(candidate.result, Refusal):
            raise candidate.result
        yield from self._confirm(item, candidate.text)
        return Authorization(candidate.result, candidate.keep)

    def _read(self, item: str, text: str) -> Steps[Entry]:
        """Verifies a pass offline and returns its entry."""
        if not text:
            raise Refusal(RefusalCode.PASS_MISSING)
        kid = key_id(text)
        try:
            key = yield from self._keys.find(kid)
        except KeysUnavailable:
            if self._on_unavailable is OnUnavailable.FAIL_CLOSED:
                raise Refusal(RefusalCode.UNAVAILABLE) from None
            return read_entry(text, None, item, self._now(), self._clock_skew)
        if key is None:
            raise Refusal(RefusalCode.PASS_INVALID)
        return read_entry(text, key, item, self._now(), self._clock_skew)

    def _confirm(self, item: str, text: str) -> Steps[None]:
        """Checks online, if configured, that the entry has not ended since the pass was signed."""
        if not self._online:
            return
        try:
            verdict = yield lambda: self._call_internal(item, "verify", {"pass": text})
        except DaegiUnavailable as error:
            _LOG.warning("online check of a pass failed: %s", error)
            if self._on_unavailable is OnUnavailable.FAIL_CLOSED:
                raise Refusal(RefusalCode.UNAVAILABLE) from None
            return
        if verdict.get("valid") is not True:
            raise Refusal(RefusalCode.PASS_REVOKED)

    def _call_internal(self, item: str, operation: str, body: dict[str, str]) -> Any:
        if self._internal is None:
            raise ValueError("internal_url is not configured; it is required to complete entries")
        return self._internal.call("POST", f"/internal/v1/item/{item}/entry/{operation}", body)

    async def _run_async(self, steps: Steps[T]) -> T:
        return await run_async(steps, self._await_call)

    async def _await_call(self, call: BlockingCall) -> Any:
        if call != self._keys.fetch_if_due:
            return await asyncio.to_thread(call)
        # All requests of the loop share one fetch, so that they do not fill its threads while daegi is slow. A client that
        # disconnects does not end it.
        if self._fetching is None or self._fetching.done() or self._fetching.get_loop() is not asyncio.get_running_loop():
            self._fetching = asyncio.create_task(asyncio.to_thread(call))
        return await asyncio.shield(self._fetching)

    def _now(self) -> int:
        return int(self._clock())
