"""Reasons to refuse a request, and the responses."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus


class RefusalCode(str, Enum):
    """Machine-readable reason of a refusal."""

    PASS_MISSING = "PASS_MISSING"
    """The request carries no pass."""
    PASS_INVALID = "PASS_INVALID"
    """Malformed, forged, or signed with a key that daegi does not publish."""
    PASS_EXPIRED = "PASS_EXPIRED"
    """The pass has expired, and its entry with it."""
    PASS_NOT_YET_VALID = "PASS_NOT_YET_VALID"
    """``iat`` or ``nbf`` is in the future."""
    PASS_OTHER_ITEM = "PASS_OTHER_ITEM"
    """The pass belongs to another item."""
    PASS_REVOKED = "PASS_REVOKED"
    """The entry was completed, given back or ended by an operator."""
    UNAVAILABLE = "UNAVAILABLE"
    """daegi was needed and is unreachable."""
    ITEM_NOT_FOUND = "ITEM_NOT_FOUND"
    """The request names no item."""


_FACTS = {
    RefusalCode.PASS_MISSING: (HTTPStatus.UNAUTHORIZED, "there is no pass, please wait in line first"),
    RefusalCode.PASS_INVALID: (HTTPStatus.UNAUTHORIZED, "the pass was not issued by the waiting room"),
    RefusalCode.PASS_EXPIRED: (HTTPStatus.UNAUTHORIZED, "the pass has expired, please join the line again"),
    RefusalCode.PASS_NOT_YET_VALID: (HTTPStatus.UNAUTHORIZED, "the pass is not valid yet"),
    RefusalCode.PASS_OTHER_ITEM: (HTTPStatus.FORBIDDEN, "the pass is for another item"),
    RefusalCode.PASS_REVOKED: (HTTPStatus.FORBIDDEN, "the pass was used or given back, please join the line again"),
    RefusalCode.UNAVAILABLE: (HTTPStatus.SERVICE_UNAVAILABLE, "the waiting room cannot be asked right now"),
    RefusalCode.ITEM_NOT_FOUND: (HTTPStatus.NOT_FOUND, "there is no such item"),
}


@dataclass(frozen=True)
class Response:
    """The response to a refused request. Names of headers are lower-case."""

    status: HTTPStatus
    headers: list[tuple[str, str]]
    body: bytes

    def all_headers(self) -> list[tuple[str, str]]:
        """Returns the headers with the length of the body."""
        return [*self.headers, ("content-length", str(len(self.body)))]


class Refusal(Exception):
    """A refused request."""

    def __init__(self, code: RefusalCode) -> None:
        self.code = code
        self.status, self.detail = _FACTS[code]
        super().__init__(self.detail)

    @property
    def should_rejoin(self) -> bool:
        """Whether joining the line resolves the refusal."""
        return self.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)

    def to_response(self, accept: str, waiting_page: str) -> Response:
        """Builds the response: browsers are redirected to the waiting page, other clients get an RFC 9457 problem."""
        common = [("cache-control", "no-store"), ("vary", "accept")]
        if "text/html" in accept and self.should_rejoin:
            # 303, so that the browser loads the page with GET whatever the request's method was.
            return Response(HTTPStatus.SEE_OTHER, [("location", waiting_page), *common], b"")
        problem = {
            "type": "about:blank",
            "title": self.status.phrase,
            "status": self.status.value,
            "code": self.code.value,
            "detail": self.detail,
        }
        if self.should_rejoin:
            problem["waitingPage"] = waiting_page
        headers = [("content-type", "application/problem+json"), *self._hint(), *common]
        return Response(self.status, headers, json.dumps(problem).encode())

    def _hint(self) -> list[tuple[str, str]]:
        """RFC 9110 requires ``WWW-Authenticate`` on every 401."""
        if self.code is RefusalCode.PASS_MISSING:
            return [("www-authenticate", "Bearer")]
        if self.status is HTTPStatus.UNAUTHORIZED:
            return [("www-authenticate", 'Bearer error="invalid_token"')]
        return [("retry-after", "1")] if self.status is HTTPStatus.SERVICE_UNAVAILABLE else []
