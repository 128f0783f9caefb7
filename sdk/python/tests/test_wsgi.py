"""The WSGI middleware. ``wsgiref.validate`` checks that it keeps to PEP 3333 on both sides."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import pytest
from daegi_guard import WsgiGuard, entry_of
from shop import TOKEN, Shop
from stub_daegi import StubDaegi


class Reply:
    def __init__(self, app: Any, path: str, headers: dict[str, str], *, read: bool = True, strict: bool = True) -> None:
        target, _, query = path.partition("?")
        environ: dict[str, Any] = {"SCRIPT_NAME": "", "PATH_INFO": target, "QUERY_STRING": query}
        environ |= {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
        setup_testing_defaults(environ)
        body: Iterable[bytes] = (validator(app) if strict else app)(environ, self._start)
        try:
            self.text = b"".join(body).decode() if read else ""
        finally:
            if hasattr(body, "close"):
                body.close()

    def _start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        self.status, self.headers = int(status[:3]), headers
        return lambda _: None

    def header(self, name: str) -> str | None:
        return next((value for found, value in self.headers if found.lower() == name), None)


def app(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
    status = environ["PATH_INFO"].rpartition("/")[2]
    start_response(f"{status if status.isdigit() else 200} Text", [("content-type", "text/plain"), ("set-cookie", "theme=dark")])
    return iter([b"hello ", entry_of(environ).user_id.encode()])


checked = validator(app)


def test_a_refused_request_never_reaches_the_application(stub: StubDaegi) -> None:
    guarded = WsgiGuard(checked, Shop(stub).guard, item="concert")
    # The validator requires a content type, which a redirect without a body does not have.
    browser = Reply(guarded, "/checkout", {"accept": "text/html"}, strict=False)
    assert (browser.status, browser.header("location"), browser.text) == (303, "https://wait.example/wait/concert", "")
    program = Reply(guarded, "/checkout", {"accept": "application/json"})
    assert (program.status, json.loads(program.text)["code"]) == (401, "PASS_MISSING")
    assert program.header("content-length") == str(len(program.text))
    assert Reply(guarded, "/checkout?pass=a.b.c", {}).header("set-cookie") is None


def test_a_pass_from_the_url_is_stored_in_a_cookie(stub: StubDaegi) -> None:
    shop = Shop(stub)
    guarded = WsgiGuard(checked, shop.guard, item="concert")
    first = Reply(guarded, f"/checkout?pass={shop.pass_}", {})
    cookies = [value for name, value in first.headers if name == "set-cookie"]
    expected = f"daegi-pass-concert={shop.pass_}; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure"
    assert (first.text, cookies) == ("hello kim", ["theme=dark", expected])
    second = Reply(guarded, "/checkout", {"cookie": expected.split(";")[0]})
    assert (second.text, second.header("set-cookie")) == ("hello kim", "theme=dark")


def test_only_paths_below_a_prefix_are_protected(stub: StubDaegi) -> None:
    def bare(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [("content-type", "text/plain")])
        return [b"open"]

    guarded = WsgiGuard(bare, Shop(stub).guard, item="concert", prefixes=["/orders", "/pay/"])
    refused = {path for path in ["/", "/orders", "/orders/", "/orders/1", "/ordersx", "/pay", "/pay/1", "/open"] if Reply(guarded, path, {}).status == 401}
    assert refused == {"/orders", "/orders/", "/orders/1", "/pay/1"}


def test_the_item_may_be_taken_from_the_request(stub: StubDaegi) -> None:
    shop = Shop(stub)
    guarded = WsgiGuard(checked, shop.guard, item=lambda environ: environ["PATH_INFO"].removeprefix("/items/"))
    paths = ["/items/concert", "/items/drop", "/items/a$b", "/items/"]
    assert [Reply(guarded, path, {"daegi-pass": shop.pass_}).status for path in paths] == [200, 403, 404, 404]


def test_only_a_successful_response_completes_the_entry(stub: StubDaegi) -> None:
    shop = Shop(stub)
    guarded = WsgiGuard(checked, shop.guard, item="concert", complete_on_success=True)
    for status in (303, 402, 500):
        assert Reply(guarded, f"/orders/{status}", {"daegi-pass": shop.pass_}).status == status
    assert stub.completed == []
    assert Reply(guarded, "/orders/201", {"daegi-pass": shop.pass_}).text == "hello kim"
    assert stub.completed == [TOKEN]


def test_an_order_counts_even_if_the_client_disconnects_and_a_failed_response_does_not(stub: StubDaegi) -> None:
    shop = Shop(stub)

    def failing(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", [("content-type", "text/plain")])
        yield b"half"
        raise OSError("the database is away")

    guarded = WsgiGuard(failing, shop.guard, item="concert", complete_on_success=True)
    with pytest.raises(OSError, match="database"):
        Reply(guarded, "/orders", {"daegi-pass": shop.pass_})
    assert stub.completed == []
    Reply(WsgiGuard(checked, shop.guard, item="concert", complete_on_success=True), "/orders", {"daegi-pass": shop.pass_}, read=False)
    assert stub.completed == [TOKEN]


def test_a_failed_completion_does_not_change_the_response(stub: StubDaegi) -> None:
    shop = Shop(stub, internal_url="http://127.0.0.1:1")
    guarded = WsgiGuard(checked, shop.guard, item="concert", complete_on_success=True)
    assert Reply(guarded, "/orders", {"daegi-pass": shop.pass_}).text == "hello kim"


def test_wrong_protections_are_rejected(stub: StubDaegi) -> None:
    guard = Shop(stub, internal_url=None).guard
    with pytest.raises(ValueError, match="internal_url"):
        WsgiGuard(app, guard, item="concert", complete_on_success=True)
    with pytest.raises(ValueError, match="not an item id"):
        WsgiGuard(app, guard, item="a$b")
    for prefixes in ("/orders", ["orders"], []):
        with pytest.raises(ValueError, match="begin with a slash"):
            WsgiGuard(app, guard, item="concert", prefixes=prefixes)
    with pytest.raises(LookupError):
        entry_of({})
