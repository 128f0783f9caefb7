"""Protects the endpoints of a Python service: only users admitted by a daegi waiting room reach them, all others are sent to the
waiting page.

``WsgiGuard`` and ``AsgiGuard`` are middleware, for example for Django and FastAPI. The guards for other languages behave
identically; ``sdk/vectors`` tests all of them.
"""

from daegi_guard.asgi import AsgiGuard
from daegi_guard.claims import Entry
from daegi_guard.guard import Authorization, Guard, OnUnavailable
from daegi_guard.http_client import DaegiUnavailable
from daegi_guard.pass_source import PassSource
from daegi_guard.protection import entry_of
from daegi_guard.refusal import Refusal, RefusalCode, Response
from daegi_guard.wsgi import WsgiGuard

__all__ = [
    "AsgiGuard",
    "Authorization",
    "DaegiUnavailable",
    "Entry",
    "Guard",
    "OnUnavailable",
    "PassSource",
    "Refusal",
    "RefusalCode",
    "Response",
    "WsgiGuard",
    "entry_of",
]
