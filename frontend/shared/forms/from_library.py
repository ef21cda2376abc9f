"""What a link of the library names: an installed template and the team's hosts."""

from __future__ import annotations

from experiments.asking.library.catalogue import ExperimentTemplate, Scale
from experiments.asking.library.install import Installed, Places, installed
from experiments.models import Host
from experiments.registry.errors import NotFound
from frontend.shared.access import TeamRequest
from frontend.shared.forms.choices import HOST_FIELDS
from frontend.shared.query import id_in

GONE = "A host of this link is not there any more; choose the hosts in the library again."


def installed_in_link(request: TeamRequest, template: ExperimentTemplate) -> tuple[Installed, Places]:
    """The team's versions and the hosts of `?scale=..&sut=..&drivers=..`. NotFound when one is not there."""
    scale: Scale = "published" if request.GET.get("scale") == "published" else "small"
    ready = installed(request.member, template, scale)
    if ready is None:
        raise NotFound(f"{template.title} is not installed in this team yet; open it in the library.")
    hosts = {role: _hosts(request, role) for role in HOST_FIELDS}
    if len(hosts["sut"]) != 1 or not hosts["drivers"] or len(hosts["drivers"]) != len(request.GET.getlist("drivers")):
        raise NotFound(GONE)
    named = {role: _hosts(request, f"m_{role}") for role in template.roles}
    if not all(len(found) == 1 for found in named.values()):
        raise NotFound(GONE)
    members = {role: host for role, (host,) in named.items()}
    return ready, Places(hosts["sut"][0], hosts["drivers"], next(iter(hosts["other_sut"]), None), members)


def _hosts(request: TeamRequest, role: str) -> tuple[Host, ...]:
    """The team's hosts that a link names, in its order."""
    wanted = [pk for text in request.GET.getlist(role) if (pk := id_in(text)) is not None]
    found: dict[int, Host] = Host.objects.for_team(request.team).in_bulk(wanted)
    return tuple(found[pk] for pk in wanted if pk in found)
