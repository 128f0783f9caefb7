"""A real daegi process, with helpers for tests."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

_ADMIN = "admin-token-of-the-guard-tests"
_ROOT = Path(__file__).parents[3]


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects, urllib.request.ProxyHandler({}))


class Reply:
    def __init__(self, response: HTTPResponse | urllib.error.HTTPError) -> None:
        with response:
            self.status, self.headers, self.text = response.status or 0, response.headers, response.read().decode()

    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.text)
        return value


def send(method: str, url: str, headers: dict[str, str] | None = None, body: bytes | None = None) -> Reply:
    """Sends one request, without redirects and cookies."""
    try:
        return Reply(_OPENER.open(urllib.request.Request(url, body, headers or {}, method=method), timeout=10))
    except urllib.error.HTTPError as error:
        return Reply(error)


def eventually(what: str, holds: Callable[[], bool], timeout: float = 20) -> None:
    """Retries until the condition holds or the timeout is over. Tests never sleep for a fixed time."""
    deadline = time.monotonic() + timeout
    while not _tried(holds):
        assert time.monotonic() < deadline, f"{what}: not within {timeout} s"
        time.sleep(0.05)


def _tried(holds: Callable[[], bool]) -> bool:
    try:
        return holds()
    except OSError:
        return False


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class DaegiProcess:
    def __init__(self) -> None:
        public, internal = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        self.public_url, self.internal_url = f"http://{public}", f"http://{internal}"
        options = "--store memory --kafka off --log error --tick-ms 100 --lease-ms 500".split()
        addresses = ["--admin-token", _ADMIN, "--public-addr", public, "--internal-addr", internal]
        self._process = subprocess.Popen([_binary(), *options, *addresses], env={}, stdout=subprocess.DEVNULL)
        try:
            eventually("daegi is ready", lambda: send("GET", f"{self.internal_url}/readyz").status == 200, 60)
            self._admin("POST", "concert/manually", {"itemName": "Friday", "remainCount": 100, "waitingQueueEnabled": True})
            self._admin("PATCH", "concert/policy", {"tokensPerTick": 10})
        except BaseException:
            self.close()
            raise

    def _admin(self, method: str, path: str, body: dict[str, Any]) -> None:
        headers = {"authorization": f"Bearer {_ADMIN}", "content-type": "application/json"}
        reply = send(method, f"{self.internal_url}/internal/admin/v1/waiting-item/{path}", headers, json.dumps(body).encode())
        assert reply.status // 100 == 2, reply.text

    def admit(self, user: str) -> AdmittedUser:
        """Joins as this user and waits until they are admitted."""
        line = f"{self.public_url}/api/v1/item/concert/waiting-queue"
        admitted = AdmittedUser(f"{line}/{send('POST', line, {'user-id': user}).json()['token']}")
        eventually("the ticket is ENTERABLE", lambda: admitted.ticket()["status"] == "ENTERABLE")
        return admitted

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class AdmittedUser:
    """A user with a ticket."""

    def __init__(self, ticket_url: str) -> None:
        self._ticket_url = ticket_url

    def ticket(self) -> dict[str, Any]:
        return send("GET", self._ticket_url).json()

    def pass_(self) -> str:
        return str(self.ticket()["pass"])


def _binary() -> str:
    target = Path(os.environ.get("CARGO_TARGET_DIR", _ROOT / "target"))
    path = Path(os.environ.get("DAEGI_BIN", target / "debug" / "daegi"))
    assert path.exists(), f"{path} is missing: cargo test --workspace builds it"
    return str(path)
