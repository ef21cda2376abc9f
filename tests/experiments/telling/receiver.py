"""A receiver of webhooks on the loopback address: plain or TLS under a CA of its own, well behaved or not."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NAME = "hooks.test"


@dataclass
class Receiver:
    """What it got, and how it answers the next ones. `released` lets a slow answer go on."""

    port: int = 0
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    status: int = 200
    answer: bytes = b"thanks"
    location: str = ""
    endless: bool = False
    slow: bool = False
    released: threading.Event = field(default_factory=threading.Event)


@contextmanager
def running_receiver(tls: Path | None = None) -> Iterator[Receiver]:
    """`tls`: a folder in which `ca.pem` and the server's certificate for NAME are made."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            receiver.bodies.append(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            receiver.headers.append(dict(self.headers.items()))
            receiver.paths.append(self.path)
            if receiver.slow:
                receiver.released.wait()
            self.send_response(receiver.status)
            if receiver.location:
                self.send_header("Location", receiver.location)
            self.end_headers()
            self.wfile.write(receiver.answer)
            try:
                while receiver.endless:
                    self.wfile.write(b"x" * 4096)
            except OSError:
                pass  # the reader has had enough

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.port = server.server_address[1]
    if tls is not None:
        make_certificates(tls)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls / "server.pem", tls / "server.key")
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.endless = False
        receiver.released.set()
        server.shutdown()
        server.server_close()


def make_certificates(folder: Path) -> None:
    """`ca.pem`, and `server.pem` with its key for NAME."""
    now = datetime.now(UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test CA")])

    def certificate(name: x509.Name, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(ca_name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        )

    constraints = x509.BasicConstraints(ca=True, path_length=None)
    # Python asks since 3.13 for what a certificate may be used for (VERIFY_X509_STRICT).
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    ca = certificate(ca_name, ca_key.public_key()).add_extension(constraints, critical=True)
    ca = ca.add_extension(usage, critical=True)
    server_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    names = x509.SubjectAlternativeName([x509.DNSName(NAME)])
    leaf = certificate(server_name, key.public_key()).add_extension(names, critical=False)
    pem = serialization.Encoding.PEM
    (folder / "ca.pem").write_bytes(ca.sign(ca_key, hashes.SHA256()).public_bytes(pem))
    (folder / "server.pem").write_bytes(leaf.sign(ca_key, hashes.SHA256()).public_bytes(pem))
    form, nothing = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "server.key").write_bytes(key.private_bytes(pem, form, nothing))
