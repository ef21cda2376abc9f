"""The load tools. A new one is a file here, a line in `AnyDriver` and in `DRIVERS`, its readers, and cases."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agents.drivers.base import Driver
from agents.drivers.wrk import Wrk
from agents.drivers.wrk2 import Wrk2

AnyDriver = Annotated[Wrk | Wrk2, Field(discriminator="kind")]

DRIVERS: dict[str, type[Driver]] = {"wrk": Wrk, "wrk2": Wrk2}
