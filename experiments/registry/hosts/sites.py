"""Sites: which there are, which of them a host is at, and that all hosts of a run are at the same one."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.deletion import ProtectedError

from experiments.models import CENTRAL, Host, Site
from experiments.registry.errors import Conflict, NotFound, RequestError
from experiments.registry.naming import check_site_name


def at(site: str, path: str = "") -> Q:
    """Hosts at this site; `path` leads to the host, as in "sut__"."""
    return Q(**{f"{path}site__name": site}) if site != CENTRAL else Q(**{f"{path}site": None})


def all_sites() -> list[Site]:
    """Those besides the central one, by name."""
    return list(Site.objects.order_by("name"))


def said(site: str) -> str:
    """The site in a sentence."""
    return f"site {site}" if site != CENTRAL else "the central site"


def find_site(name: str, *, field: str = "site") -> Site | None:
    """The site of this name; None = the central one. RequestError says which there are."""
    if name == CENTRAL:
        return None
    found: Site | None = Site.objects.filter(name=name).first()
    if found is None:
        names = ", ".join(Site.objects.order_by("name").values_list("name", flat=True))
        there = f"There are: {names}." if names else "There is none besides the central one."
        raise RequestError(f"There is no site {name!r}. {there} An operator adds one.", field=field)
    return found


def sites_whose_keys_stay() -> frozenset[str]:
    """Only the site-workers there log in to hosts of these."""
    return frozenset(Site.objects.filter(keys_stay=True).values_list("name", flat=True))


def in_use() -> list[str]:
    """The sites that hosts are at, the central one first."""
    return [
        CENTRAL,
        *Site.objects.filter(hosts__isnull=False).distinct().order_by("name").values_list("name", flat=True),
    ]


def insist_on_one_site(sut: Host, others: Iterable[tuple[str, Host]]) -> None:
    """RequestError naming the field of the first host that is at another site than the SUT: no worker reaches both."""
    for field, host in others:
        if host.site_id != sut.site_id:
            raise RequestError(
                f"{host.name} is at {said(host.site_name)} and {sut.name} at {said(sut.site_name)}: all hosts of a run "
                "are at one site, as one worker must reach them all. Choose another host, or change the site of one "
                "of them.",
                field=field,
            )


MOST_LIVE_RUNS = 100_000


def add_site(name: str, *, description: str = "", most_live_runs: int | None = None, keys_stay: bool = False) -> Site:
    """A new site. RequestError (fields `name`, `description`, `most_live_runs`) says what cannot be stored."""
    check_site_name(name)
    site = Site(name=name, keys_stay=keys_stay)
    _fill(site, description, most_live_runs)
    try:
        with transaction.atomic():
            site.save()
    except IntegrityError as error:
        raise Conflict(f"There is a site named {name} already.", field="name") from error
    return site


def change_site(name: str, *, description: str, most_live_runs: int | None) -> Site:
    """Another description or limit; the name stays, as workers are started with it."""
    with transaction.atomic():
        site = _locked(name)
        _fill(site, description, most_live_runs)
        site.save()
    return site


def remove_site(name: str) -> None:
    """Forget a site that no host is at."""
    with transaction.atomic():
        site = _locked(name)
        try:
            site.delete()
        except ProtectedError as error:
            count = site.hosts.count()
            hosts = "1 host is" if count == 1 else f"{count} hosts are"
            raise Conflict(f"{hosts} at site {name}; give them another one first.") from error


def _locked(name: str) -> Site:
    site: Site | None = Site.objects.select_for_update().filter(name=name).first()
    if site is None:
        raise NotFound(f"There is no site {name!r}.", field="name")
    return site


def _fill(site: Site, description: str, most_live_runs: int | None) -> None:
    if len(description) > 200 or not description.isprintable():
        raise RequestError("A description is one line of at most 200 characters.", field="description")
    if most_live_runs is not None and not 1 <= most_live_runs <= MOST_LIVE_RUNS:
        raise RequestError(f"A site has 1 to {MOST_LIVE_RUNS:,} live runs.", field="most_live_runs")
    site.description, site.most_live_runs = description.strip(), most_live_runs
