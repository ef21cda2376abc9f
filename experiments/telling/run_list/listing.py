"""The list of runs: filters, one query box, sorting and keyset paging; the same for page, API and CSV."""

from __future__ import annotations

from experiments.models import Run, Team
from experiments.telling.run_list.csv_text import COLUMNS, csv_rows
from experiments.telling.run_list.filters import RunFilter, matching
from experiments.telling.run_list.order import SORTS
from experiments.telling.run_list.paging import MAX_LIMIT, Page, cursor_after, page_of

__all__ = ["COLUMNS", "MAX_LIMIT", "SORTS", "RunFilter", "RunPage", "csv_rows", "cursor_after", "runs_page"]

RunPage = Page[Run]


def runs_page(team: Team, runs: RunFilter, *, sort: str = "-number", cursor: str = "", limit: int = 50) -> RunPage:
    """The runs after (or before) `cursor`, with the names that every list shows."""
    return page_of(matching(team, runs).with_names(), sort=sort, cursor=cursor, limit=limit)
