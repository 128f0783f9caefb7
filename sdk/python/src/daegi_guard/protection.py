"""What both kinds of middleware have in common: which requests are protected, and where handlers find the entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from daegi_guard.claims import Entry, is_item
from daegi_guard.guard import Guard
from daegi_guard.refusal import Refusal, RefusalCode

_ENTRY = "daegi_guard.entry"

Item = str | Callable[[Mapping[str, Any]], str | None]
"""The item, or a function that takes it from the WSGI environment or the ASGI scope. A request without a valid item gets 404."""


@dataclass(frozen=True)
class Protection:
    """How requests are protected."""

    item: Item
    prefixes: Sequence[str]

    def __post_init__(self) -> None:
        if isinstance(self.item, str) and not is_item(self.item):
            raise ValueError(f"{self.item!r} is not an item id")
        if isinstance(self.prefixes, str) or not self.prefixes or not all(prefix.startswith("/") for prefix in self.prefixes):
            raise ValueError("prefixes must be a list of paths that begin with a slash")

    def covers(self, path: str) -> bool:
        """Returns whether a path equals a prefix or lies below it."""
        path = path or "/"
        return any(path == prefix or path.startswith(prefix.rstrip("/") + "/") for prefix in self.prefixes)

    def item_of(self, request: Mapping[str, Any]) -> str:
        """Returns the item of a request. Raises ``Refusal`` if it has none."""
        item = self.item if isinstance(self.item, str) else self.item(request)
        if item is None or not is_item(item):
            raise Refusal(RefusalCode.ITEM_NOT_FOUND)
        return item


def require_completion(guard: Guard, complete_on_success: bool) -> None:
    """Raises ``ValueError`` if no entry could be completed."""
    if complete_on_success and not guard.can_complete:
        raise ValueError("internal_url is not configured; it is required to complete entries")


def store_entry(request: MutableMapping[str, Any], entry: Entry) -> None:
    """Stores the entry in a WSGI environment or an ASGI scope."""
    request[_ENTRY] = entry


def entry_of(request: object) -> Entry:
    """Returns the entry of an authorized request: a WSGI environment, an ASGI scope, or an object that has one, such as the requests
    of Django, Flask, Starlette and FastAPI."""
    for found in (request, getattr(request, "scope", None), getattr(request, "environ", None)):
        entry = found.get(_ENTRY) if isinstance(found, Mapping) else None
        if isinstance(entry, Entry):
            return entry
    raise LookupError("this route is not behind a guard")
