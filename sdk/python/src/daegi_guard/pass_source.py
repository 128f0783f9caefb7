"""Finds the pass of a request and writes the cookie that stores it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from daegi_guard.claims import Entry


@dataclass(frozen=True)
class PassSource:
    """The pass in the URL and the one in cookie or headers; empty strings if there is none.

    Sources, in this order: the header ``daegi-pass``, the query parameter ``pass`` (as in an item's ``entryUrl``), the guard's
    cookie, ``Authorization: Bearer``. The bearer token is last because a service may use it for its own authentication. If both
    URL and cookie carry a pass, ``Guard.authorize`` decides.
    """

    in_url: str
    stored: str

    @classmethod
    def find(cls, query: str, header: Callable[[str], str], item: str) -> PassSource:
        """Finds the passes of a request for this item. ``header`` returns an empty string for a missing header."""
        own = header("daegi-pass")
        if own:
            return cls("", own)
        in_url = _after("pass=", query.split("&"))
        stored = _after(f"{_cookie_name(item)}=", header("cookie").split(";"))
        return cls(in_url, stored if in_url or stored else _bearer(header("authorization")))

    @property
    def first(self) -> str:
        """The first pass of the request, or an empty string."""
        return self.in_url or self.stored


def pass_cookie(entry: Entry, text: str, now: int, https: bool) -> str:
    """Returns the ``Set-Cookie`` header that stores a pass until it expires, unreadable to scripts and other sites."""
    seconds = max(0, entry.expires_at - now)
    secure = "; Secure" if https else ""
    return f"{_cookie_name(entry.item_id)}={text}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"


def _cookie_name(item: str) -> str:
    """One cookie per item, because a user may have entries of several items. Item ids are valid in cookie names."""
    return f"daegi-pass-{item}"


def _after(start: str, pairs: list[str]) -> str:
    """A pass contains no characters that need URL escaping."""
    found = (pair.strip()[len(start) :] for pair in pairs if pair.strip().startswith(start))
    return next(found, "")


def _bearer(header: str) -> str:
    scheme, _, text = header.partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""
