"""The published keys: Ed25519 (EdDSA), P-256 (ES256) and RSA (RS256)."""

from __future__ import annotations

from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicKey, EllipticCurvePublicNumbers
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from daegi_guard.base64url import decode_base64url

ALGORITHMS = ("EdDSA", "ES256", "RS256")
_MIN_RSA_BITS = 2048
_ES256_BYTES = 32
"""The bytes of each of the two numbers of a signature."""


@dataclass(frozen=True)
class PublicKey:
    """A key that verifies signatures of exactly one algorithm."""

    algorithm: str
    _key: Ed25519PublicKey | EllipticCurvePublicKey | RSAPublicKey

    def verify(self, signature: bytes, signed: bytes) -> bool:
        """Returns whether this key signed the bytes."""
        try:
            if isinstance(self._key, Ed25519PublicKey):
                self._key.verify(signature, signed)
            elif isinstance(self._key, RSAPublicKey):
                self._key.verify(signature, signed, PKCS1v15(), SHA256())
            else:
                self._key.verify(_der(signature), signed, ECDSA(SHA256()))
        except (InvalidSignature, ValueError):
            return False
        return True


def usable_key(published: object) -> tuple[str, PublicKey] | None:
    """Imports a key. Returns None for keys of other types, which the set may contain."""
    if not isinstance(published, dict):
        return None
    kid = published.get("kid")
    try:
        key = _import(published)
    except (KeyError, TypeError, ValueError):
        return None
    if key is None or not isinstance(kid, str) or published.get("alg", key.algorithm) != key.algorithm:
        return None
    return kid, key


def _import(published: dict[str, str]) -> PublicKey | None:
    match published.get("kty"), published.get("crv"):
        case "OKP", "Ed25519":
            return PublicKey("EdDSA", Ed25519PublicKey.from_public_bytes(decode_base64url(published["x"])))
        case "EC", "P-256":
            numbers = EllipticCurvePublicNumbers(_number(published["x"]), _number(published["y"]), SECP256R1())
            return PublicKey("ES256", numbers.public_key())
        case "RSA", None:
            modulus = _number(published["n"])
            if modulus.bit_length() < _MIN_RSA_BITS:
                return None
            return PublicKey("RS256", RSAPublicNumbers(_number(published["e"]), modulus).public_key())
    return None


def _number(text: str) -> int:
    return int.from_bytes(decode_base64url(text), "big")


def _der(signature: bytes) -> bytes:
    """Encodes the two numbers of a JWT's signature as the library expects them."""
    if len(signature) != 2 * _ES256_BYTES:
        raise ValueError("not an ES256 signature")
    r, s = signature[:_ES256_BYTES], signature[_ES256_BYTES:]
    return encode_dss_signature(int.from_bytes(r, "big"), int.from_bytes(s, "big"))
