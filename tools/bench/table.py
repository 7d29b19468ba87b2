"""The figures as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tools.bench.startup import startup_table
from tools.bench.watched import watch_table


def report(figures: Mapping[str, Any]) -> Group:
    """Return all tables."""
    return Group(*_parts(figures))


def _parts(figures: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield _cells(figures)
    if "scale" in figures:
        yield _scale(figures["scale"])
    matches = figures["signature_matches_per_second"]
    yield Text(f"signature matches per second: {matches['new']:,} new messages, {matches['known']:,} known ones")
    log = figures["log_matching"]
    size = f"{log['bytes'] / 1e6:.1f} MB with {log['signatures']:,} signatures"
    yield Text(f"matching a log of {size}: {log['seconds']:.2f} s")
    servers = ", ".join(f"{name} {_megabytes(size)}" for name, size in figures["servers"].items())
    yield Text(f"memory of an idle warm server: {servers}")
    if "epochs" in figures:
        yield _epochs(figures["epochs"])
    yield startup_table(figures["startup"])
    if "watch" in figures:
        yield watch_table(figures["watch"])
    yield _targets(figures)
    yield _machine(figures["machine"])


def _cells(figures: Mapping[str, Any]) -> Table:
    environment = figures["environment"]
    table = Table(
        title=f"one cell on {environment['name']}: {environment['versions']}; bytecode {environment['bytecode']}"
    )
    for column in ("cell", "mode"):
        table.add_column(column)
    for column in ("median s", "min", "max", "cpu s", "x by hand", "x cpu", "peak MB"):
        table.add_column(column, justify="right")
    for cell in figures["cells"]:
        label = cell["label"]
        for mode in ("by hand", "cold", "warm"):
            if mode not in cell:
                continue
            one, ratio = cell[mode], cell["times_as_fast"].get(mode, {"wall": 1.0, "cpu": 1.0})
            seconds = [f"{one['seconds'][which]:.2f}" for which in ("median", "min", "max")]
            ratios = [f"{ratio[which]:.1f}" for which in ("wall", "cpu")]
            table.add_row(label, mode, *seconds, f"{one['cpu_seconds']:.2f}", *ratios, _megabytes(one["peak_bytes"]))
            label = ""
        table.add_section()
    return table


def _scale(scale: Mapping[str, Any]) -> Table:
    hand = scale["by_hand"]
    table = Table(
        title=f"{scale['cells']} cells; by hand {hand['seconds']:.0f} s, as {hand['cells']} of them show, give or take"
        f" {hand['standard_error']:.0f} s"
    )
    for column in ("machine", "seconds", "x by hand", "planned from the evidence", "from another run"):
        table.add_column(column, justify="left" if column == "machine" else "right")
    for row in scale["here"]:
        plans = ["" if row[source] is None else f"{row[source]:.0f}" for source in ("from_evidence", "from_run")]
        times = f"{hand['seconds'] / row['seconds']:.1f}"
        table.add_row(f"{row['cores']} cores here", f"{row['seconds']:.1f}", times, *plans)
    for row in scale["elsewhere"]:
        table.add_row(row["name"], "", "", f"{row['from_evidence']:.0f}", f"{row['from_run']:.0f}")
    return table


def _epochs(epochs: Mapping[str, Any]) -> Table:
    table = Table(title=f"a Lightning epoch of {epochs['batches']} batches on sim")
    for column in ("network", "cores", "rounds", "clock", "cpu s", "sim s", "x cpu", "min", "max"):
        table.add_column(column, justify="left" if column in {"network", "cores", "clock"} else "right")
    for cores, networks in (("all", epochs["networks"]), ("one", epochs["networks_on_one_core"])):
        for network, timing in networks.items():
            for clock in ("wall", "processor"):
                seconds = [f"{timing[clock]['seconds'][device]:.2f}" for device in ("cpu", "sim")]
                ratios = [f"{timing[clock]['ratio'][which]:.2f}" for which in ("median", "min", "max")]
                table.add_row(network, cores, str(timing["rounds"]), clock, *seconds, *ratios)
    return table


def _targets(figures: Mapping[str, Any]) -> Table:
    table = Table(title="targets")
    for column in ("what", "wanted", "measured", ""):
        table.add_column(column)
    for target in figures["targets"]:
        verdict = Text("met", "green") if target["met"] else Text("missed", "red")
        table.add_row(target["what"], target["wanted"], target["measured"], verdict)
    return table


def _machine(machine: Mapping[str, Any]) -> Text:
    loads = [f"{machine[when]['load'][0]} {when}" for when in ("before", "after")]
    others = [f"{machine[when]['others_percent']:.0f} % {when}" for when in ("before", "after")]
    load = f"{machine['processors']} processors; load {', '.join(loads)}; other processes used {', '.join(others)}"
    if machine["busy"]:
        return Text(f"The machine was BUSY with other processes; compare ratios, not seconds: {load}", "yellow")
    return Text(f"The machine was quiet: {load}")


def _megabytes(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:,.0f}"
