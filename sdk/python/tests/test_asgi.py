"""The ASGI middleware."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

import pytest
from daegi_guard import AsgiGuard, entry_of
from shop import TOKEN, Shop
from stub_daegi import StubDaegi

Message = MutableMapping[str, Any]
HTTP = {"type": "http", "path": "/checkout", "query_string": b"", "headers": []}


def call(app: Any, **scope: Any) -> list[Message]:
    """Runs one request and returns what was sent."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(app({**HTTP, **scope}, receive, send))
    return sent


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        return
    status = scope["path"].rpartition("/")[2]
    await send({"type": "http.response.start", "status": int(status) if status.isdigit() else 200, "headers": [(b"vary", b"origin")]})
    await send({"type": "http.response.body", "body": b"hello ", "more_body": True})
    await send({"type": "http.response.body", "body": entry_of(scope).user_id.encode()})


def with_pass(shop: Shop) -> list[tuple[bytes, bytes]]:
    return [(b"daegi-pass", shop.pass_.encode())]


def text_of(sent: list[Message]) -> str:
    return b"".join(message.get("body", b"") for message in sent).decode()


def cookies_of(message: Message) -> list[str]:
    return [value.decode() for name, value in message["headers"] if name == b"set-cookie"]


def test_a_refused_request_never_reaches_the_application(stub: StubDaegi) -> None:
    guarded = AsgiGuard(app, Shop(stub).guard, item="concert")
    browser = call(guarded, headers=[(b"accept", b"text/html")])
    assert (browser[0]["status"], dict(browser[0]["headers"])[b"location"]) == (303, b"https://wait.example/wait/concert")
    program = call(guarded)
    assert (program[0]["status"], json.loads(text_of(program))["code"]) == (401, "PASS_MISSING")
    assert dict(program[0]["headers"])[b"content-length"] == str(len(text_of(program))).encode()


def test_a_pass_from_the_url_is_stored_in_a_cookie(stub: StubDaegi) -> None:
    shop = Shop(stub)
    guarded = AsgiGuard(app, shop.guard, item="concert")
    first = call(guarded, query_string=f"pass={shop.pass_}".encode())
    cookie = f"daegi-pass-concert={shop.pass_}; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure"
    assert (text_of(first), cookies_of(first[0])) == ("hello kim", [cookie])
    # HTTP/2 may split cookies into several headers.
    second = call(guarded, headers=[(b"cookie", b"theme=dark"), (b"cookie", cookie.split(";")[0].encode())])
    assert (text_of(second), cookies_of(second[0])) == ("hello kim", [])


def test_a_mounted_application_is_protected_below_its_root(stub: StubDaegi) -> None:
    async def bare(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    guarded = AsgiGuard(bare, Shop(stub).guard, item="concert", prefixes=["/orders"])
    for root, path, status in [
        ("", "/orders/1", 401),
        ("/shop", "/shop/orders", 401),
        ("/shop", "/orders", 401),
        ("/shop", "/shop/open", 200),
        ("", "/ordersx", 200),
    ]:
        assert call(guarded, root_path=root, path=path)[0]["status"] == status, (root, path)


def test_only_a_successful_response_completes_the_entry_before_background_tasks(stub: StubDaegi) -> None:
    shop = Shop(stub)
    during: list[list[str]] = []

    async def with_background_task(scope: Any, receive: Any, send: Any) -> None:
        await app(scope, receive, send)
        during.append(list(stub.completed))

    guarded = AsgiGuard(with_background_task, shop.guard, item="concert", complete_on_success=True)
    for status in (303, 402, 500):
        assert call(guarded, path=f"/orders/{status}", headers=with_pass(shop))[0]["status"] == status
    assert text_of(call(guarded, path="/orders/201", headers=with_pass(shop))) == "hello kim"
    assert (stub.completed, during) == ([TOKEN], [[], [], [], [TOKEN]])


def test_other_ends_of_a_response_complete_the_entry_too_but_an_exception_does_not(stub: StubDaegi) -> None:
    shop = Shop(stub)

    async def sends_a_file(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"] == "/fails":
            raise OSError("the disk is away")
        await send({"type": "http.response.pathsend", "path": "/ticket.pdf"})

    guarded = AsgiGuard(sends_a_file, shop.guard, item="concert", complete_on_success=True)
    with pytest.raises(OSError, match="disk"):
        call(guarded, path="/fails", headers=with_pass(shop))
    assert stub.completed == []
    call(guarded, headers=with_pass(shop))
    assert stub.completed == [TOKEN]


def test_a_failed_completion_does_not_change_the_response(stub: StubDaegi) -> None:
    shop = Shop(stub, internal_url="http://127.0.0.1:1")
    guarded = AsgiGuard(app, shop.guard, item="concert", complete_on_success=True)
    assert text_of(call(guarded, headers=with_pass(shop))) == "hello kim"


def test_a_websocket_needs_a_pass_too(stub: StubDaegi) -> None:
    shop = Shop(stub)
    guarded = AsgiGuard(app, shop.guard, item="concert", complete_on_success=True)
    assert call(guarded, type="websocket") == [{"type": "websocket.close", "code": 1008}]
    detailed = call(guarded, type="websocket", extensions={"websocket.http.response": {}})
    assert [detailed[0]["type"], detailed[0]["status"]] == ["websocket.http.response.start", 401]
    assert (detailed[1]["type"], json.loads(detailed[1]["body"])["code"]) == ("websocket.http.response.body", "PASS_MISSING")
    accepted = call(guarded, type="websocket", query_string=f"pass={shop.pass_}".encode())
    assert (accepted[0]["type"], len(cookies_of(accepted[0]))) == ("websocket.accept", 1)
    assert stub.completed == [], "a WebSocket has no successful response"


def test_the_lifespan_is_not_protected(stub: StubDaegi) -> None:
    seen: list[str] = []

    async def lifespan(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    asyncio.run(AsgiGuard(lifespan, Shop(stub).guard, item="concert")({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert seen == ["lifespan"]
