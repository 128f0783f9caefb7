"""A FastAPI shop behind a waiting room, as a user of the guard would write it."""

from __future__ import annotations

from typing import Annotated

from daegi_guard import AsgiGuard, Entry, Guard, entry_of
from fastapi import Depends, FastAPI, Request, Response, WebSocket


def entry(request: Request) -> Entry:
    return entry_of(request)


CurrentEntry = Annotated[Entry, Depends(entry)]


def create_app(guard: Guard, online: Guard) -> FastAPI:
    app = FastAPI()
    app.add_middleware(AsgiGuard, guard=guard, item="concert", prefixes=["/checkout", "/live"])
    app.add_middleware(AsgiGuard, guard=guard, item=lambda scope: scope["path"].removeprefix("/items/"), prefixes=["/items"])
    app.add_middleware(AsgiGuard, guard=online, item="concert", prefixes=["/strict"])
    app.add_middleware(AsgiGuard, guard=guard, item="concert", prefixes=["/orders"], complete_on_success=True)

    @app.get("/checkout")
    @app.get("/items/{item}")
    @app.get("/strict")
    async def hello(entry: CurrentEntry) -> str:
        return f"hello {entry.user_id}"

    @app.post("/orders/{status}")
    def order(status: int, entry: CurrentEntry, response: Response) -> str:
        response.status_code = status
        return f"ordered by {entry.user_id}"

    @app.get("/open")
    async def open_to_all() -> str:
        return "open to all"

    @app.websocket("/live")
    async def live(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text(f"hello {entry_of(socket).user_id}")
        await socket.close()

    return app
