"""A certificate of this machine for itself, for tests of TLS."""

import datetime as dt
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def self_signed() -> tuple[bytes, bytes]:
    """A certificate of 127.0.0.1 and its key, in PEM form."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    began = dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)
    place = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number())
    made = made.not_valid_before(began).not_valid_after(began + dt.timedelta(days=1))
    made = made.add_extension(place, critical=False).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    return made.sign(key, hashes.SHA256()).public_bytes(pem), private
