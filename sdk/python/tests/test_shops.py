"""Shops in FastAPI (uvicorn) and Django (wsgiref) behind a real daegi, over HTTP."""

from __future__ import annotations

import re
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import django_shop
import fastapi_shop
import pytest
import uvicorn
from daegi_guard import Guard
from daegi_process import DaegiProcess, eventually, free_port, send
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

Shop = tuple[str, str]
"""The name and the URL of a shop."""


@pytest.fixture(scope="session")
def daegi() -> Iterator[DaegiProcess]:
    daegi = DaegiProcess()
    yield daegi
    daegi.close()


@contextmanager
def fastapi(guard: Guard, online: Guard) -> Iterator[str]:
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(fastapi_shop.create_app(guard, online), port=port, log_level="warning", ws="websockets-sansio"))
    thread = threading.Thread(target=server.run)
    thread.start()
    eventually("uvicorn listens", lambda: server.started)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


class ThreadedServer(socketserver.ThreadingMixIn, WSGIServer):
    pass


class QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def django(guard: Guard, online: Guard) -> Iterator[str]:
    server = make_server("127.0.0.1", 0, django_shop.create_app(guard, online), ThreadedServer, QuietHandler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session", params=[fastapi, django], ids=["FastAPI", "Django"])
def shop(request: pytest.FixtureRequest, daegi: DaegiProcess) -> Iterator[Shop]:
    guard = Guard(daegi.public_url, internal_url=daegi.internal_url)
    online = Guard(daegi.public_url, internal_url=daegi.internal_url, online=True)
    with request.param(guard, online) as url:
        yield request.param.__name__, url


def test_browsers_without_a_pass_are_redirected_and_other_clients_get_a_problem(shop: Shop, daegi: DaegiProcess) -> None:
    for path in ("/checkout", "/strict"):
        browser = send("GET", shop[1] + path, {"accept": "text/html"})
        page = f"{daegi.public_url}/wait/concert"
        assert (browser.status, browser.headers["location"]) == (303, page)
        assert send("GET", page).status == 200, "the page is there"
        program = send("GET", shop[1] + path, {"accept": "application/json"})
        assert (program.status, program.headers["content-type"]) == (401, "application/problem+json")
        assert (program.json()["code"], program.json()["waitingPage"]) == ("PASS_MISSING", page)
    assert send("GET", f"{shop[1]}/open").status == 200, "not everything is protected"


def test_an_admitted_user_passes_and_the_browser_stores_the_pass(shop: Shop, daegi: DaegiProcess) -> None:
    name, url = shop
    text = daegi.admit(f"kim-{name}").pass_()
    first = send("GET", f"{url}/checkout?pass={text}")
    assert (first.status, first.text.strip('"')) == (200, f"hello kim-{name}")
    cookie = first.headers["set-cookie"]
    assert re.fullmatch(r"daegi-pass-concert=\S+; Path=/; Max-Age=\d+; HttpOnly; SameSite=Lax", cookie)
    second = send("GET", f"{url}/checkout", {"cookie": cookie.split(";")[0]})
    assert (second.text.strip('"'), second.headers["set-cookie"]) == (f"hello kim-{name}", None)


def test_the_item_may_be_part_of_the_request(shop: Shop, daegi: DaegiProcess) -> None:
    headers = {"daegi-pass": daegi.admit(f"cho-{shop[0]}").pass_()}
    statuses = [send("GET", f"{shop[1]}/items/{item}", headers).status for item in ("concert", "drop", "a$b")]
    assert statuses == [200, 403, 404]


def test_a_successful_order_completes_the_entry_and_the_pass_is_revoked(shop: Shop, daegi: DaegiProcess) -> None:
    name, url = shop
    user = daegi.admit(f"lee-{name}")
    headers = {"authorization": f"Bearer {user.pass_()}"}
    assert send("GET", f"{url}/strict", headers).status == 200
    assert send("POST", f"{url}/orders/402", headers).status == 402
    assert send("GET", f"{url}/strict", headers).status == 200, "a failed order ends nothing"
    assert send("POST", f"{url}/orders/201", headers).status == 201
    eventually("completed", lambda: bool(user.ticket()["status"] == "COMPLETED"))
    refused = send("GET", f"{url}/strict", headers)
    assert (refused.status, refused.json()["code"]) == (403, "PASS_REVOKED")
    assert send("GET", f"{url}/checkout", headers).status == 200, "offline, a pass is good until it expires"


@pytest.mark.parametrize("shop", [fastapi], indirect=True, ids=["FastAPI"])
def test_a_websocket_needs_a_pass_too(shop: Shop, daegi: DaegiProcess) -> None:
    address = f"{shop[1].replace('http', 'ws')}/live"
    with pytest.raises(InvalidStatus) as refused:
        connect(address, proxy=None)
    assert refused.value.response.status_code == 401
    with connect(f"{address}?pass={daegi.admit('han').pass_()}", proxy=None) as socket:
        assert socket.recv() == "hello han"
