"""Calls daegi's JSON endpoints over connections that are kept open."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import weakref
from collections import deque
from collections.abc import Mapping
from urllib.parse import urlsplit

_MAX_IDLE = 16
# No response of daegi to a guard is as large.
_MAX_RESPONSE_BYTES = 1 << 20


class DaegiUnavailable(Exception):
    """daegi is unreachable or responded with an error."""


class HttpClient:
    """Calls one listener of daegi. Safe for threads: a connection is in use by one of them."""

    def __init__(self, base_url: str, timeout: float, ssl_context: ssl.SSLContext | None) -> None:
        self._base_url = base_url
        self._timeout = timeout
        self._ssl_context = ssl_context
        self._address = urlsplit(base_url)
        if self._address.scheme not in ("http", "https") or not self._address.hostname:
            raise ValueError(f"{base_url!r} is not an HTTP URL")
        self._idle: deque[http.client.HTTPConnection] = deque()
        weakref.finalize(self, _close_all, self._idle)
        self._pid = os.getpid()

    def call(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Mapping[str, object]:
        """Sends one request and returns the object of the response, which must be 200."""
        try:
            status, text = self._exchange(method, path, body)
            value: object = json.loads(text) if status == http.client.OK else None
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            raise DaegiUnavailable(f"{self._base_url}{path}: {error!r}") from error
        if not isinstance(value, dict):
            raise DaegiUnavailable(f"{self._base_url}{path} responded with {status} and no object")
        return value

    def _exchange(self, method: str, path: str, body: Mapping[str, str] | None) -> tuple[int, bytes]:
        idle = self._take_idle()
        if idle is not None:
            try:
                return self._send(idle, method, path, body)
            except ConnectionError:
                # The server has closed the idle connection. All calls are idempotent: send it again.
                pass
        return self._send(self._connect(), method, path, body)

    def _send(self, connection: http.client.HTTPConnection, method: str, path: str, body: Mapping[str, str] | None) -> tuple[int, bytes]:
        headers = {"accept": "application/json"}
        content = None
        if body is not None:
            headers["content-type"] = "application/json"
            content = json.dumps(body).encode()
        try:
            connection.request(method, self._address.path.rstrip("/") + path, content, headers)
            response = connection.getresponse()
            text = response.read(_MAX_RESPONSE_BYTES)
        except BaseException:
            connection.close()
            raise
        if response.isclosed() and not response.will_close and len(self._idle) < _MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.close()
        return response.status, text

    def _take_idle(self) -> http.client.HTTPConnection | None:
        if self._pid != os.getpid():
            # After a fork, both processes would write to the same connections.
            self._idle.clear()
            self._pid = os.getpid()
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._address.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._ssl_context)
        return http.client.HTTPConnection(host, port, timeout=self._timeout)


def _close_all(connections: deque[http.client.HTTPConnection]) -> None:
    while connections:
        connections.pop().close()
