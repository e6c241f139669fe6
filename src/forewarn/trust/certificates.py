"""Certificates: an authority of our own, and what it signs for the service's names.

The extensions are those that strict verifiers insist on (RFC 5280; Python 3.13, OpenSSL 3, Node):
an authority says that it is one and what its key is for, and each certificate names its key and
its issuer's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from forewarn.trust import keys

AUTHORITY_LASTS: Final = timedelta(days=3652)
# Longer ones are refused by some verifiers.
SERVER_LASTS: Final = timedelta(days=397)
# Clocks differ, and a clock may be set back after the certificate was made.
BACKDATED: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)
    ends_at: datetime


def make_authority(now: datetime, name: str) -> Issued:
    """A new authority, trusted by nobody yet."""
    key = ec.generate_private_key(ec.SECP256R1())
    # Two authorities of one name would confuse verifiers: the serial number is in it.
    serial = x509.random_serial_number()
    subject = _name(f"forewarn on {name} {serial:040x}"[:_COMMON_NAME_MAX])
    certificate = (
        _begun(subject, subject, key.public_key(), now, now + AUTHORITY_LASTS, serial)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    return _issued(certificate, key)


def issue(authority: Issued, names: Sequence[str], now: datetime) -> Issued:
    """A certificate for a server of these names and addresses, signed by an authority."""
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    signing = keys.load(authority.key)
    key = ec.generate_private_key(ec.SECP256R1())
    ends_at = min(now + SERVER_LASTS, issuer.not_valid_after_utc)
    subject = _name(names[0][:_COMMON_NAME_MAX])
    certificate = (
        _begun(subject, issuer.subject, key.public_key(), now, ends_at, x509.random_serial_number())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()),
            critical=False,
        )
        .add_extension(x509.SubjectAlternativeName(list(map(_spoken_for, names))), critical=False)
        .sign(signing, hashes.SHA256())
    )
    return _issued(certificate, key)


def load(pem: bytes) -> Issued:
    """A private key and then its certificate, as PEM. Raises: ValueError."""
    key, begin, rest = pem.partition(b"-----BEGIN CERTIFICATE-----")
    certificate = x509.load_pem_x509_certificate(begin + rest)
    if keys.load(key).public_key() != certificate.public_key():
        raise ValueError("the certificate is not that of the key")
    return _issued(certificate, keys.load(key))


# RFC 5280's upper bound.
_COMMON_NAME_MAX: Final = 64


def _begun(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime,
    ends_at: datetime,
    serial: int,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(serial)
        .not_valid_before(now - BACKDATED)
        .not_valid_after(ends_at)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _spoken_for(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _issued(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Issued:
    return Issued(
        certificate=certificate.public_bytes(Encoding.PEM),
        key=keys.spell(key),
        ends_at=certificate.not_valid_after_utc,
    )
