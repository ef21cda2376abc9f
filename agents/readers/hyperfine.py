"""hyperfine's JSON and CSV: seconds; every run is a repetition, warm-up runs are none.

Source: hyperfine 1.15, src/export.
"""

from __future__ import annotations

from agents.readers.base.json_node import Node, has_keys, load_json
from agents.readers.base.named_result import NamedResult, Readout, Repetitions
from agents.readers.base.result_reader import ResultForm, ResultReader, Source
from agents.readers.base.table import read_table

TOOL = "hyperfine"
_FIGURES = (
    ("time_mean_s", "mean"),
    ("time_stdev_s", "stddev"),
    ("time_median_s", "median"),
    ("time_min_s", "min"),
    ("time_max_s", "max"),
    ("cpu_user_s", "user"),
    ("cpu_system_s", "system"),
)
_CSV_HEAD = "command,mean,stddev,median,user,system,min,max"


def read_json(source: Source) -> Readout:
    """The commands of --export-json. Raises ParseError."""
    document, _ = load_json(source.text, TOOL)
    results = tuple(_command(one) for one in document.at("results").elements())
    return Readout(TOOL, "hyperfine-json", results, None, {}, "" if results else "no command ran")


def _command(one: Node) -> NamedResult:
    figures: dict[str, object] = {name: one.known(theirs) for name, theirs in _FIGURES}
    one.at("mean").number()
    codes, more = one.find("exit_codes"), {}
    if codes is not None:
        said = [None if code.value is None else code.number() for code in codes.elements()]
        more = {"exit_codes": said}
        figures["errors_total"] = sum(code != 0 for code in said)
    given, times = one.find("parameters"), one.find("times")
    params = {name: value.text() for name, value in given.items()} if given is not None else {}
    if (old := one.known_text("parameter")) is not None:  # before 1.10
        params = {"parameter": old}
    repetitions = None
    if times is not None:
        values = times.numbers()
        repetitions = Repetitions("run", len(values), "time_s", {"time_s": values})
    return NamedResult(one.at("command").text(), figures, params, repetitions, more=more)


def read_csv(source: Source) -> Readout:
    """The commands of --export-csv; it has no single runs. Raises ParseError."""
    results = []
    for row in read_table(source.text, tuple(_CSV_HEAD.split(",")), TOOL):
        row.number("mean")
        params = {
            name.removeprefix("parameter_"): cell for name, cell in row.cells.items() if name.startswith("parameter_")
        }
        results.append(NamedResult(row.text("command"), {name: row.known(theirs) for name, theirs in _FIGURES}, params))
    return Readout(TOOL, "hyperfine-csv", tuple(results), None, {}, "" if results else "no command ran")


HYPERFINE = ResultReader(
    TOOL,
    TOOL,
    (
        ResultForm(
            "hyperfine-json",
            lambda head: has_keys(head, "results", "command", "mean", "stddev", "median", "user", "system"),
            read_json,
        ),
        ResultForm("hyperfine-csv", lambda head: head.lstrip().startswith(_CSV_HEAD), read_csv),
    ),
    ("time_mean_s",),
)
