"""The guard as ASGI middleware (ASGI 3), for FastAPI, Starlette, Django and other frameworks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from daegi_guard.claims import Entry
from daegi_guard.guard import Guard
from daegi_guard.pass_source import PassSource
from daegi_guard.protection import Item, Protection, require_completion, store_entry
from daegi_guard.refusal import Refusal, Response

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# RFC 6455: the connection violates the policy of the server.
_POLICY_VIOLATION = 1008


class AsgiGuard:
    """Refuses HTTP requests and WebSockets without a valid pass. Handlers get the entry from ``entry_of``."""

    def __init__(
        self,
        app: App,
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or not self._protection.covers(_path(scope)):
            await self._app(scope, receive, send)
            return
        page = ""
        try:
            item = self._protection.item_of(scope)
            page = self._guard.waiting_page(item)
            source = PassSource.find(scope.get("query_string", b"").decode("latin-1"), lambda name: _header(scope, name), item)
            authorization = await self._guard.aauthorize(item, source)
        except Refusal as refusal:
            await _respond(refusal.to_response(_header(scope, "accept"), page), scope, receive, send)
            return
        store_entry(scope, authorization.entry)
        sender = _Sender(send, self._guard.cookie(authorization))
        if self._complete_on_success and scope["type"] == "http":
            sender.complete = lambda: self._complete(authorization.entry)
        await self._app(scope, receive, sender)
        await sender.finish()

    async def _complete(self, entry: Entry) -> None:
        # The order was placed, even if the server cancels the request of a client that has disconnected.
        await asyncio.shield(asyncio.to_thread(self._guard.try_complete, entry))


def _path(scope: Scope) -> str:
    """Returns the path below ``root_path``, which the path of a mounted application contains."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and (path == root or path.startswith(f"{root}/")) else path


def _header(scope: Scope, name: str) -> str:
    """Returns a header, or an empty string. HTTP/2 may split cookies into several headers."""
    values = [value.decode("latin-1") for found, value in scope["headers"] if found.lower() == name.encode()]
    return "; ".join(values) if name == "cookie" else next(iter(values), "")


async def _respond(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        if "websocket.http.response" not in scope.get("extensions", {}):
            # The server responds to the handshake with 403.
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
            return
    prefix = "websocket.http" if scope["type"] == "websocket" else "http"
    headers = [(name.encode(), value.encode("latin-1")) for name, value in response.all_headers()]
    await send({"type": f"{prefix}.response.start", "status": response.status.value, "headers": headers})
    await send({"type": f"{prefix}.response.body", "body": response.body})


class _Sender:
    """``send`` that adds the cookie, and completes the entry after the last part of a successful response."""

    def __init__(self, send: Send, cookie: str | None) -> None:
        self._send = send
        self._cookie = cookie
        self._is_success = False
        self.complete: Callable[[], Awaitable[None]] | None = None

    async def __call__(self, message: Message) -> None:
        kind = message["type"]
        if kind == "http.response.start":
            self._is_success = 200 <= message["status"] < 300
        if self._cookie is not None and kind in ("http.response.start", "websocket.accept"):
            message = {**message, "headers": [*message.get("headers", ()), (b"set-cookie", self._cookie.encode("latin-1"))]}
        await self._send(message)
        if kind == "http.response.body" and not message.get("more_body", False):
            # Before background tasks of the application.
            await self.finish()

    async def finish(self) -> None:
        """Completes the entry once, if the response was successful."""
        complete, self.complete = self.complete, None
        if complete is not None and self._is_success:
            await complete()
