"""A guard with a stub of daegi, and a pass of its key."""

from __future__ import annotations

import base64
import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from daegi_guard import Guard
from stub_daegi import StubDaegi

NOW = 1_000
TOKEN = "kim-concert-01890000-0000-8000-8000-000000000007"
CLAIMS = {"iss": "daegi", "aud": "concert", "sub": "kim", "jti": TOKEN[-36:], "num": 7, "iat": 900, "exp": 1600}


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def part(value: object) -> str:
    return base64url(json.dumps(value).encode())


def invented() -> str:
    """A pass that names a key which daegi does not publish."""
    return f"{part({'alg': 'EdDSA', 'kid': 'invented'})}.e30.AA"


class Shop:
    def __init__(self, stub: StubDaegi, **options: Any) -> None:
        self.stub = stub
        key = Ed25519PrivateKey.generate()
        stub.keys = {"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "1", "x": base64url(key.public_key().public_bytes_raw())}]}
        signed = f"{part({'alg': 'EdDSA', 'kid': '1'})}.{part(CLAIMS)}"
        self.pass_ = f"{signed}.{base64url(key.sign(signed.encode()))}"
        self.guard = Guard(
            stub.url, **{"internal_url": stub.url, "browser_url": "https://wait.example/", "clock": lambda: NOW, **options}
        )
