"""Runs beside each other, and what the gate says."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from experiments.mcp.asking import Api
from experiments.mcp.fitting import marked, without_empty
from experiments.mcp.tool import Answer, Arguments, Id, Metric, RunNumber, Tool
from experiments.mcp.tools.runs import row_of

_KINDS = ("asked", "drift", "noise")


class CompareRuns(Arguments):
    baseline: RunNumber
    candidates: list[RunNumber] = Field(min_length=1, max_length=7)


class DiffConfiguration(CompareRuns):
    with_noise: bool = Field(False, description="Also what is known to vary from run to run")


class GetVerdict(Arguments):
    run: RunNumber | None = None
    experiment: Id | None = None
    metrics: list[Metric] = Field([], max_length=10, description="Of an experiment: those that decide")
    baseline: str = Field(
        "",
        max_length=300,
        description="Of an experiment, in place of its baseline variant: branch:main, label:KEY=VALUE, run:12",
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> GetVerdict:
        if (self.run is None) == (self.experiment is None):
            raise ValueError("Give run or experiment, one of both.")
        return self


async def compare_runs(api: Api, asked: CompareRuns) -> Answer:
    """Figures of the candidates against the baseline."""
    found = await _compared(api, asked)
    differing = {kind: len(found["configuration"][kind]) + len(found["hardware"][kind]) for kind in _KINDS}
    content = {
        "comparable": found["comparable"],
        "confounders": found["confounders"],
        "runs": [row_of(run) for run in found["runs"]],
        "metrics": [
            {name: row[name] for name in ("metric", "unit", "direction", "values", "changes_pct")}
            for row in found["metrics"]
        ],
        "settings_that_differ": differing,
        "read_it_so": "Single runs vary: a change is a verdict only with repetitions and an interval (get_verdict).",
    }
    return Answer(content, [asked.baseline, *asked.candidates])


async def diff_configuration(api: Api, asked: DiffConfiguration) -> Answer:
    """Settings and hardware that differ between the runs."""
    found = await _compared(api, asked)
    kinds = _KINDS if asked.with_noise else _KINDS[:2]
    content: dict[str, Any] = {"order_of_values": [asked.baseline, *asked.candidates]}
    for part in ("configuration", "hardware"):
        content[part] = {kind: found[part][kind] for kind in kinds}
    content["confounders"] = found["confounders"]
    return Answer(content, [asked.baseline, *asked.candidates])


async def get_verdict(api: Api, asked: GetVerdict) -> Answer:
    """What the gate says of a run or of an experiment, with the figures behind it."""
    if asked.run is not None:
        said = await api.get(f"/runs/{asked.run}/verdict")
    else:
        rules = {"metric": asked.metrics, "baseline": asked.baseline}
        said = await api.get(f"/experiments/{asked.experiment}/verdict", **rules)
    content = {
        "run": asked.run,
        "experiment": asked.experiment,
        **{name: said[name] for name in ("outcome", "finished", "decided_by", "comment_reason", "url")},
        "reasons": marked(said["reasons"], "why the gate says so, with texts of hosts, tools and people"),
        "numbers": [without_empty(one) for one in said["numbers"]],
    }
    return Answer(without_empty(content), [asked.run, said["decided_by"]])


async def _compared(api: Api, asked: CompareRuns) -> Any:
    return await api.get("/compare", baseline=asked.baseline, candidate=asked.candidates)


TOOLS = (
    Tool(
        "compare_runs",
        "Compare runs",
        "All figures of up to 7 candidate runs against a baseline run, the changes in percent, and what makes them "
        "hard to compare (confounders). diff_configuration says which settings differ.",
        CompareRuns,
        compare_runs,
    ),
    Tool(
        "get_verdict",
        "Verdict",
        "pass, fail, inconclusive or error for an experiment (its candidates against the baseline, with 95 % "
        "intervals in percent) or for one run (does it count). An interval that holds 0 shows no difference.",
        GetVerdict,
        get_verdict,
    ),
    Tool(
        "diff_configuration",
        "What was configured differently",
        "Settings and hardware that differ between runs, as the machines really had them: `asked` = the recipes "
        "differ there, `drift` = nobody asked for it. A value of null: not there.",
        DiffConfiguration,
        diff_configuration,
    ),
)
