"""Liberty's configuration files: the smallest server.xml that serves, and what the files of an instance say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from xml.sax.saxutils import escape, quoteattr

from agents.formats.xml_document import XmlError, flatten


def server_xml(features: Iterable[str], apps: Mapping[str, str]) -> str:
    """A server that listens on every address and does not look for changed files while it is measured."""
    listed = "".join(f"        <feature>{escape(feature)}</feature>\n" for feature in features)
    deployed = "".join(
        f"    <webApplication contextRoot={quoteattr(root)} location={quoteattr(place)}/>\n"
        for root, place in apps.items()
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<server>\n'
        f"    <featureManager>\n{listed}    </featureManager>\n"
        '    <httpEndpoint id="defaultHttpEndpoint" host="*"/>\n'
        '    <config updateTrigger="disabled"/>\n'
        '    <applicationMonitor updateTrigger="disabled"/>\n'
        f"{deployed}</server>\n"
    )


def ports_xml(port: int, address: str, *, tls: bool) -> str:
    """Read by Liberty behind server.xml, so that port and address are those that are asked, whatever server.xml says.

    With `address` "" the address stays that of server.xml.
    """
    http, https = (-1, port) if tls else (port, -1)
    host = f' host="{address}"' if address else ""
    endpoint = f'<httpEndpoint id="defaultHttpEndpoint"{host} httpPort="{http}" httpsPort="{https}"/>'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<server>{endpoint}</server>\n'


def parse_liberty(frames: Mapping[str, bytes]) -> dict[str, str]:
    """The frames of `liberty_scripts.EFFECTIVE`, flat; a file that is no XML is given as it is."""
    flat: dict[str, str] = {}
    for name, data in frames.items():
        if name == "server_xml" or name.startswith("config:"):
            section = f"server.liberty.{name.replace('config:', 'config_dropins/').removesuffix('.xml')}"
            try:
                flat.update({f"{section}.{path}": value for path, value in flatten(data).items()})
            except XmlError:
                flat[section] = data.decode("utf-8", "replace")
    options = [line for line in _lines(frames.get("jvm_options", b"")) if not line.startswith("#")]
    # Below jvm.arguments, which is what a jvm_options step says that it sets.
    flat.update({f"jvm.arguments.jvm_options[{number}]": option for number, option in enumerate(options)})
    for line in _lines(frames.get("bootstrap_properties", b"")):
        key, equals, value = line.partition("=")
        if equals and not line.lstrip().startswith(("#", "!")):
            flat[f"server.liberty.bootstrap_properties.{key.strip()}"] = value.strip()
    return flat


def _lines(data: bytes) -> Iterator[str]:
    return (line for line in data.decode("utf-8", "replace").splitlines() if line.strip())
