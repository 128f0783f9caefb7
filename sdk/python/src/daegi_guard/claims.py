"""Decodes and validates the claims of a pass."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from daegi_guard.base64url import decode_base64url
from daegi_guard.public_key import ALGORITHMS, PublicKey
from daegi_guard.refusal import Refusal, RefusalCode

ISSUER = "daegi"
_ITEM = re.compile(r"[A-Za-z0-9._~-]{1,64}")
_USER = re.compile(r"[A-Za-z0-9._~@:+-]{1,128}")
_LANE = re.compile(r"(?!standard\Z)[A-Za-z0-9._~-]{1,32}")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MAX_COUNT = 2**63 - 1


@dataclass(frozen=True)
class Entry:
    """An admitted user, as stated by their pass.

    All passes of an entry share ``item_id``, ``user_id`` and ``number``: use these as the key for one order per entry.
    """

    user_id: str
    item_id: str
    pass_id: str
    """The id of the pass. It changes when daegi's ticket secret is rotated."""
    number: int
    """The ticket's number, unique in its lane."""
    lane: str | None
    """The name of the ticket's lane; None for the standard lane."""
    expires_at: int
    """When the entry expires, in seconds since the Unix epoch."""
    signature_verified: bool
    """Whether the signature was verified. False only with ``OnUnavailable.FAIL_OPEN``."""

    @property
    def token(self) -> str:
        """The ticket's token, which identifies the entry to daegi."""
        return f"{self.user_id}-{self.item_id}-{self.pass_id}"


def is_item(value: object) -> bool:
    """Returns whether a value is a valid item id."""
    return isinstance(value, str) and _ITEM.fullmatch(value) is not None


def key_id(text: str) -> str:
    """Reads the key id from the header of a pass. It is unverified."""
    parts = text.split(".")
    header = _decode(parts[0]) if len(parts) == 3 else {}
    kid = header.get("kid")
    if header.get("alg") not in ALGORITHMS or not isinstance(kid, str):
        raise Refusal(RefusalCode.PASS_INVALID)
    return kid


def read_entry(text: str, key: PublicKey | None, item: str, now: int, skew: float) -> Entry:
    """Validates signature, issuer, item and times, and returns the entry. Without a key the signature is not verified."""
    if key is not None and not _is_signed(text, key):
        raise Refusal(RefusalCode.PASS_INVALID)
    claims = _decode(text.split(".")[1])
    entry = Entry(
        user_id=_text(claims, "sub", _USER),
        item_id=_text(claims, "aud", _ITEM),
        pass_id=_text(claims, "jti", _UUID),
        number=_count(claims, "num"),
        lane=None if claims.get("lane") is None else _text(claims, "lane", _LANE),
        expires_at=_count(claims, "exp"),
        signature_verified=key is not None,
    )
    valid_from = max(_count(claims, "iat"), 0 if claims.get("nbf") is None else _count(claims, "nbf"))
    if claims.get("iss") != ISSUER:
        raise Refusal(RefusalCode.PASS_INVALID)
    if entry.item_id != item:
        raise Refusal(RefusalCode.PASS_OTHER_ITEM)
    if valid_from > now + skew:
        raise Refusal(RefusalCode.PASS_NOT_YET_VALID)
    if entry.expires_at <= now - skew:
        raise Refusal(RefusalCode.PASS_EXPIRED)
    return entry


def _is_signed(text: str, key: PublicKey) -> bool:
    signed, _, signature = text.rpartition(".")
    # The key fixes the algorithm: trusting the header would allow "none" and HS256 forgeries.
    if _decode(text.split(".")[0]).get("alg") != key.algorithm:
        return False
    try:
        return key.verify(decode_base64url(signature), signed.encode("ascii"))
    except ValueError:
        return False


def _decode(part: str) -> Mapping[str, object]:
    """Decodes a JSON object from a part of a JWT. Returns an empty object if there is none."""
    try:
        value: object = json.loads(decode_base64url(part))
    except (ValueError, RecursionError):
        # RecursionError: thousands of nested arrays.
        return {}
    return value if isinstance(value, dict) else {}


def _text(claims: Mapping[str, object], name: str, pattern: re.Pattern[str]) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or pattern.fullmatch(value) is None:
        raise Refusal(RefusalCode.PASS_INVALID)
    return value


def _count(claims: Mapping[str, object], name: str) -> int:
    value = claims.get(name)
    # In Python, True is an int.
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_COUNT:
        raise Refusal(RefusalCode.PASS_INVALID)
    return value
