"""Stub of the endpoints that a guard calls: public keys, online checks, completions."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class StubDaegi:
    """Fields may be changed between calls."""

    def __init__(self) -> None:
        self.keys: object = None
        """None: responds with 503."""
        self.verdict: object = None
        self.before_keys = threading.Event()
        """The response with keys waits for this event."""
        self.before_keys.set()
        self.fetch_began = threading.Event()
        self.key_fetches = 0
        self.online_checks = 0
        self.connections = 0
        self.completed: list[str] = []
        self._open: list[socket.socket] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Headers and body are two writes: without this, the second waits for the client's delayed acknowledgement.
            wbufsize = -1

            def setup(self) -> None:
                stub.connections += 1
                stub._open.append(self.request)
                super().setup()

            def do_GET(self) -> None:
                assert self.path == "/.well-known/jwks.json"
                stub.key_fetches += 1
                stub.fetch_began.set()
                stub.before_keys.wait(20)
                self._respond(stub.keys)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if self.path == "/internal/v1/item/concert/entry/complete":
                    stub.completed.append(body["token"])
                    self._respond({"released": True})
                else:
                    assert self.path.startswith("/internal/v1/item/") and self.path.endswith("/entry/verify") and body["pass"]
                    stub.online_checks += 1
                    self._respond(stub.verdict)

            def _respond(self, body: object) -> None:
                text = b"" if body is None else json.dumps(body).encode()
                self.send_response(503 if body is None else 200)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def drop_connections(self) -> None:
        """Closes connections as a server does that restarts or finds them idle for too long."""
        for connection in self._open:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                # The client was faster.
                pass

    def close(self) -> None:
        self.before_keys.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
