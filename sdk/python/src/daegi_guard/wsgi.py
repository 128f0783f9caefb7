"""The guard as WSGI middleware (PEP 3333), for Django, Flask and other frameworks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from daegi_guard.claims import Entry
from daegi_guard.guard import Guard
from daegi_guard.pass_source import PassSource
from daegi_guard.protection import Item, Protection, require_completion, store_entry
from daegi_guard.refusal import Refusal

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


class WsgiGuard:
    """Refuses requests without a valid pass. Handlers get the entry from ``entry_of``."""

    def __init__(
        self,
        app: WSGIApplication,
        guard: Guard,
        *,
        item: Item,
        prefixes: Sequence[str] = ("/",),
        complete_on_success: bool = False,
    ) -> None:
        """Protects all requests, or those whose path equals one of ``prefixes`` or lies below it.

        ``complete_on_success`` completes the entry after each successful response (2xx), so that daegi can admit the next user.
        """
        require_completion(guard, complete_on_success)
        self._app = app
        self._guard = guard
        self._protection = Protection(item, prefixes)
        self._complete_on_success = complete_on_success

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not self._protection.covers(environ.get("PATH_INFO", "")):
            return self._app(environ, start_response)
        page = ""
        try:
            item = self._protection.item_of(environ)
            page = self._guard.waiting_page(item)
            source = PassSource.find(environ.get("QUERY_STRING", ""), lambda name: _header(environ, name), item)
            authorization = self._guard.authorize(item, source)
        except Refusal as refusal:
            response = refusal.to_response(_header(environ, "accept"), page)
            start_response(f"{response.status.value} {response.status.phrase}", response.all_headers())
            return [response.body]
        store_entry(environ, authorization.entry)
        started = _Started(start_response, self._guard.cookie(authorization))
        body = self._app(environ, started)
        if not self._complete_on_success:
            return body
        return _CompletingBody(body, started, self._guard, authorization.entry)


def _header(environ: WSGIEnvironment, name: str) -> str:
    return str(environ.get(f"HTTP_{name.upper().replace('-', '_')}", ""))


class _Started:
    """``start_response`` that adds the cookie and remembers the status."""

    def __init__(self, start_response: StartResponse, cookie: str | None) -> None:
        self._start_response = start_response
        self._cookie = cookie
        self.is_success = False

    def __call__(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None, /) -> Callable[[bytes], object]:
        self.is_success = status.startswith("2")
        if self._cookie is not None:
            headers = [*headers, ("set-cookie", self._cookie)]
        return self._start_response(status, headers, exc_info)


class _CompletingBody:
    """A response body that completes the entry when the server has sent it. The server calls ``close`` then."""

    def __init__(self, body: Iterable[bytes], started: _Started, guard: Guard, entry: Entry) -> None:
        self._body = body
        self._chunks: Iterator[bytes] | None = None
        self._started = started
        self._guard = guard
        self._entry = entry
        self._failed = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            if self._chunks is None:
                self._chunks = iter(self._body)
            return next(self._chunks)
        except StopIteration:
            raise
        except BaseException:
            self._failed = True
            raise

    def close(self) -> None:
        try:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()
        finally:
            if self._started.is_success and not self._failed:
                self._guard.try_complete(self._entry)
