"""Base64url without padding, as JWTs have it."""

from __future__ import annotations

import base64
import binascii
import re

_BASE64URL = re.compile(r"[A-Za-z0-9_-]+")


def decode_base64url(text: str) -> bytes:
    """Decodes base64url without padding. Raises ValueError for anything else, which Python's decoder would skip."""
    if _BASE64URL.fullmatch(text) is None:
        raise ValueError("not base64url")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise ValueError("not base64url") from error
