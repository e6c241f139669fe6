"""Private keys of the curve P-256, and how they are spelled in files."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec


def make() -> bytes:
    """A new private key as PEM."""
    return spell(ec.generate_private_key(ec.SECP256R1()))


def spell(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key as PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def load(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """A private key from its PEM. Raises: ValueError."""
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is not one of the curve P-256")  # noqa: TRY004 - it is a key
    return key
