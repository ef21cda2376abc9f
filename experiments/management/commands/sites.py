"""The sites of the installation: shows, adds, changes and removes them."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.management import base
from experiments.models import Site
from experiments.registry.errors import RequestError
from experiments.registry.hosts.sites import add_site, change_site, remove_site


class Command(base.Command):
    help = (
        "Places with hosts that only workers there reach. Without an action it lists them. A worker is at a site when "
        "it is started with its name; hosts without a site are at the central one."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION")
        for action, what in (("add", "a new site"), ("change", "another description or limit")):
            one = actions.add_parser(action, help=what)
            one.add_argument("name", help="lowercase letters, digits and hyphens, such as berlin")
            one.add_argument("--description", help="what people read beside the name")
            if action == "add":
                one.add_argument(
                    "--keys-stay",
                    action="store_true",
                    help="its workers are site-workers, which fetch runs over HTTPS and keep the hosts' keys",
                )
            one.add_argument(
                "--most-live-runs", type=int, help="runs that may be live there at once; 0 = as the setting says"
            )
        actions.add_parser("remove", help="forget a site that no host is at").add_argument("name")

    def handle(self, *_arguments: Any, action: str | None, **options: Any) -> None:
        if action is None:
            self._list()
            return
        try:
            self._change(
                action,
                options["name"],
                options.get("description"),
                options.get("most_live_runs"),
                options.get("keys_stay"),
            )
        except RequestError as error:
            raise CommandError(error.message) from error

    def _change(
        self, action: str, name: str, description: str | None, most_live_runs: int | None, keys_stay: bool | None
    ) -> None:
        if action == "remove":
            remove_site(name)
            self.stdout.write(f"Site {name} is removed.")
            return
        if action == "add":
            add_site(
                name,
                description=description or "",
                most_live_runs=most_live_runs or None,
                keys_stay=bool(keys_stay),
            )
            start = f"site-worker --site {name}" if keys_stay else f"BENCHHUB_SITE={name}"
            self.stdout.write(f"Site {name} is there. Start a worker at it: {start}.")
            return
        site = Site.objects.filter(name=name).first()
        stored = (site.description, site.most_live_runs) if site else ("", None)
        change_site(
            name,
            description=stored[0] if description is None else description,
            most_live_runs=stored[1] if most_live_runs is None else most_live_runs or None,
        )
        self.stdout.write(f"Site {name} is changed.")

    def _list(self) -> None:
        for site in Site.objects.order_by("name").prefetch_related("hosts"):
            limit = f"at most {site.most_live_runs} live runs" if site.most_live_runs else ""
            keys = "keys stay there" if site.keys_stay else ""
            said = "; ".join(filter(None, (f"{site.hosts.count()} hosts", limit, keys, site.description)))
            self.stdout.write(f"{site.name}: {said}")
