"""What may be the name of something that people ask for again: in a launch, in an address, on a command line.

Only a new name is held to it: one that exists already keeps working.
"""

from __future__ import annotations

import re

from experiments.registry.errors import RequestError

MOST_CHARS = 120
SITE_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
"""Such a name stands in names of queues, in settings and in metrics."""
_VERSION = re.compile(r"@[0-9]{1,9}\Z")
"""Behind a document's name it means that version of it; see `experiments.api.finding.named_document`."""


def check_title(name: str, what: str, *, field: str = "name") -> None:
    """RequestError for a name that nobody could type again: empty, too long, blanks around it, control characters."""
    if not 1 <= len(name) <= MOST_CHARS:
        raise RequestError(f"{what}'s name has 1 to {MOST_CHARS} characters.", field=field)
    if not name.isprintable():
        raise RequestError(
            f"{what}'s name has printable characters only: no line ends, tabs, control characters or blanks of other "
            "kinds.",
            field=field,
        )
    if name != name.strip():
        raise RequestError(f"{what}'s name has no blank at its beginning or end.", field=field)


def check_address_name(name: str, what: str, *, field: str = "name") -> None:
    """RequestError for a name that cannot be a part of an address of the API."""
    check_title(name, what, field=field)
    if "/" in name or name in (".", ".."):
        raise RequestError(
            f"{what}'s name stands in addresses: it has no slash and is not a dot or two; try {_suggested(name)!r}.",
            field=field,
        )


def check_document_name(name: str, what: str, *, field: str = "name") -> None:
    """RequestError for a name that could not be launched: `name@3` means the third version of `name`."""
    check_address_name(name, what, field=field)
    if found := _VERSION.search(name):
        raise RequestError(
            f"{what}'s name does not end in {found[0]}: a launch would take that for a version of it; "
            f"try {name[: found.start()].strip() + '-' + found[0][1:]!r}.",
            field=field,
        )


def check_site_name(name: str, *, field: str = "name") -> None:
    """RequestError for a name that no worker could be given: a site is named like a host of DNS."""
    if name == "central":
        raise RequestError("Every installation has the central site already; choose another name.", field=field)
    if not SITE_NAME.fullmatch(name):
        raise RequestError(
            "A site's name has 1 to 40 lowercase letters, digits and hyphens, with no hyphen at its beginning or end, "
            "such as berlin-2.",
            field=field,
        )


def check_experiment_name(name: str, *, field: str = "name") -> None:
    """RequestError for a name that could not be asked for: a number means the experiment of that number."""
    check_title(name, "An experiment", field=field)
    if name.isascii() and name.isdigit():
        raise RequestError(
            f"An experiment's name is not only a number: a launch would take {name} for experiment {name}.", field=field
        )


def _suggested(name: str) -> str:
    return name.replace("/", "-") if name.strip("/.") else "main"
