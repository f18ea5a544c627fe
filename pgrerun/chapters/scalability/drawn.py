"""The charts of the chapter: frames from the print, the simulation, the published run and this run, and their words."""

import pandas as pd

from pgrerun import charts, narrate, published, statistics
from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.scalability import commit, cores, reading, turns


def _point(x: float, kind: str, value: statistics.Interval | float, **more) -> dict:
    return charts.row(f"{x:g}", kind, value, x=x, **more)


def _counted(frame: pd.DataFrame) -> pd.Series:
    """The labels of points over clients, in words."""
    return frame["x"].map(lambda number: narrate.count(int(number), "client"))


def _number(arm: str) -> int:
    """The clients in an arm's name ("as it comes, 16 clients")."""
    return int(arm.rpartition(", ")[2].split()[0])


def _over_clients(frame: pd.DataFrame, **words) -> charts.Figure:
    """Lines over the number of clients, on a logarithmic axis; the rest is said in `words`."""
    labels = _counted(frame) if "series" not in frame else frame["series"] + ", " + _counted(frame)
    return charts.lines(frame, description=narrate.described(frame.assign(label=labels)), x_quantity="clients", x_unit="", log_x=True, **words)


def the_print() -> charts.Figure:
    """What the talk claims of many clients, as ratios."""
    read, write = published.table("scalability_read").value, published.table("scalability_write").value
    rows = [
        ("lookups, 32 clients", read["gain"]), ("writers, 32 clients", 1 + write["gain_percent"] / 100),
        ("inserts, 250 clients", write["commit_gain_low"]), ("64 processors over one", read["speedup"]),
    ]  # fmt: skip
    frame = pd.DataFrame([{"label": label, "kind": "printed", "value": value} for label, value in rows])
    return charts.compare_to_print(
        frame,
        question="How much more throughput did PostgreSQL 9.2 bring, and how far does it scale?",
        caption="The talk's ratios: PostgreSQL 9.2 over 9.1 for three loads, and 64 processors over one. Of six to eight times the lower is drawn.",
        description=narrate.described(frame),
        quantity="ratio of throughputs",
        unit="",
        reference=1,
        reference_label="no gain",
        log=True,
        name="scalability-print",
    )


def swept(chapter: Chapter, experiment: str, what: str, fitted: statistics.USL | None) -> charts.Figure | None:
    """Throughput over clients, with the law that was fitted to it; None if nobody has measured it."""
    rows = []
    for kind, frame in chapter.by_provenance(experiment):
        table = wide(frame, "throughput").drop(columns=reading.AGAIN, errors="ignore")
        rows += [_point(_number(arm), kind, statistics.median(table[arm])) for arm in table]
    if fitted is not None:
        at = sorted({row["x"] for row in rows})
        rows += [_point(x, "simulated", float(fitted.predict([x])[0])) for x in at]
    if not rows:
        return None
    frame = pd.DataFrame(rows).sort_values(["kind", "x"])
    return _over_clients(
        frame,
        question=f"How does the throughput of {what} change with the number of clients?",
        caption="Medians with intervals; the dashed line, a model's, is the universal scalability law fitted to this run.",
        quantity="throughput",
        unit="transactions/s",
        zero=True,
        name=f"scalability-{experiment}",
    )


def many_processors(simulated: pd.DataFrame | None) -> charts.Figure | None:
    """The talk's first graph, simulated."""
    if simulated is None:
        return None
    machine = simulated[(simulated["processors"] == cores.TALK["cores"]) & simulated["release"].isin(cores.RELEASES)]
    rows = []
    for lines, curves in machine.groupby("lines", sort=False):
        if lines == cores.HERE:  # its curves are those of the first set of costs
            curves = curves[curves["block"] == 0]
        one = curves[curves["clients"] == 1].groupby("release")["throughput"].median()
        for (release, clients), group in curves.groupby(["release", "clients"], sort=False):
            rows.append(_point(clients, "simulated", float(group["throughput"].median() / one[release]), series=release, panel=lines))
    frame = pd.DataFrame(rows)
    return _over_clients(
        frame,
        question="What would the talk's releases do on its machine of 32 processors?",
        caption="Simulated throughput over that of one client. The costs of a lookup, a lock and a sleep are those of the reader's machine; those of a cache line are, too, "
        "in one panel, and in the other what comes nearest to the talk's gain with 32 clients. Which locks are taken is the releases'.",
        quantity="throughput relative to one client",
        unit="",
        facet="panel",
        zero=True,
        name="scalability-processors",
    )


def by_line(swept: pd.DataFrame | None) -> charts.Figure | None:
    """The gain of 9.2 over 9.1, and what is left of the first patch alone, over the cost of a cache line."""
    if swept is None:
        return None
    at = swept.pivot(index="line", columns=["release", "clients"], values="throughput")
    few, many = (int(cores.TALK["cores"] * times) for times in (1, 2))
    series = {
        f"9.2 over 9.1, {few} clients": at[cores.AFTER, few] / at[cores.BEFORE, few],
        f"first patch over 9.1, {many} clients": at[cores.FIRST, many] / at[cores.BEFORE, many],
    }
    rows = [_point(line * 1e9, "simulated", value, series=name) for name, values in series.items() for line, value in values.items()]
    rows += [_point(line * 1e9, "printed", cores.TALK["gain"], series="") for line in (at.index[0], at.index[-1])]
    frame = pd.DataFrame(rows)
    return charts.lines(
        frame,
        question="What does it take for the talk's curves to come out?",
        caption="Simulated on 32 processors, over the time that a cache line takes from one processor to another; all other costs are measured here. The talk's gain is drawn as printed.",
        description=narrate.described(frame.assign(label=frame["series"] + " " + frame["label"] + " ns")),
        x_quantity="time for a cache line",
        x_unit="ns",
        quantity="ratio of throughputs",
        unit="",
        log_y=True,
        name="scalability-line-cost",
    )


def many_commits(simulated: pd.DataFrame | None) -> charts.Figure | None:
    """Group commit, simulated, by the time of a flush."""
    if simulated is None:
        return None
    names = {"queue": "9.1", "together": "9.2"}
    rows = [
        _point(row.clients, "simulated", row.throughput, series=names[row.way], panel=f"a flush takes {row.flush * 1e3:g} ms")
        for row in simulated.itertuples()
    ]
    frame = pd.DataFrame(rows)
    return _over_clients(
        frame,
        question="What does it cost to let those who wait for a flush go on one by one?",
        caption="Simulated single inserts on the talk's commit machine: 9.1 lets waiting commits go on in line, 9.2 all at once. How long its disk took to flush isn't said.",
        quantity="throughput",
        unit="transactions/s",
        facet="panel",
        own_scales=True,
        zero=True,
        name="scalability-commit-simulated",
    )


def commits_over_clients(chapter: Chapter) -> charts.Figure | None:
    """Commits per flush and throughput over clients, by way of committing."""
    panels = {"per flush": "commits per flush", "throughput": "transactions per second"}
    rows = []
    for experiment, slow in (("commit sweep", ""), ("slowed sweep", "slowed flush")):
        for kind, observed in chapter.by_provenance(experiment):
            for metric, panel in panels.items():
                table = wide(observed, metric)
                rows += [
                    _point(_number(arm), kind, statistics.median(table[arm]), series=slow or arm.rpartition(", ")[0], panel=panel)
                    for arm in table if arm.startswith(commit.PLAIN)
                ]  # fmt: skip
    if not rows:
        return None
    frame = pd.DataFrame(rows).sort_values(["panel", "series", "kind", "x"])
    return _over_clients(
        frame,
        question="How many commits does one flush of the log carry?",
        caption="Single inserts over clients. One server's flush was made slow on purpose, by a library that waits in front of it.",
        quantity="commits, transactions",
        unit="",
        facet="panel",
        own_scales=True,
        log_y=True,
        name="scalability-commits",
    )


def compared(chapter: Chapter, experiment: str, metric: str, *, question: str, caption: str, quantity: str, unit: str, name: str, log: bool = False) -> charts.Figure | None:
    """Every arm of an experiment, with its interval; None if nobody has measured it."""
    rows = []
    for kind, observed in chapter.by_provenance(experiment):
        table = wide(observed, metric)
        for arm in dict.fromkeys(observed["arm"]):
            rows.append(charts.row(arm, kind, statistics.median(table[arm])))
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame, question=question, caption=caption, description=narrate.described(frame), quantity=quantity, unit=unit, log=log, zero=not log, name=name
    )  # fmt: skip


def together(chapter: Chapter) -> charts.Figure | None:
    """Commits flushed together and each alone, by load and clients."""
    few, many = (commit.clients(chapter, crowd) for crowd in (commit.FEW, commit.MANY))
    panels = {(commit.INSERT, commit.FEW): "inserts, few clients", (commit.INSERT, commit.MANY): "inserts, many clients", (commit.TEN, commit.MANY): "longer, many clients"}
    rows = [
        charts.row(way, kind, statistics.median(wide(observed, "throughput")[commit.arm(load, way, crowd)]), panel=panel)
        for (load, crowd), panel in panels.items() for way in (commit.TOGETHER, commit.ALONE)
        for kind, observed in chapter.by_provenance("commits")
    ]  # fmt: skip
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="What does it bring that one flush carries the commits of many?",
        caption=f"Single inserts by {few} clients and by {many}, and transactions of ten statements by {many}. Flushed alone, each commit waits until the one before has been flushed.",
        description=narrate.described(frame),
        quantity="throughput",
        unit="transactions/s",
        facet="panel",
        own_scales=True,
        zero=True,
        name="scalability-together",
    )


SHOWN = 6  # kinds of wait that have a colour of their own


def waits(reading_found: pd.DataFrame | None, writing_found: pd.DataFrame | None) -> charts.Figure | None:
    """What active backends do at the end of each sweep: run, or wait for what, as shares."""
    loads = {}
    if reading_found is not None:
        for number, rows in reading_found.groupby("clients"):
            loads[f"lookups, {narrate.count(int(number), 'client')}"] = rows
    if writing_found is not None:
        loads |= {f"{name} commits": rows for name, rows in writing_found.groupby("load", sort=False)}
    shares = {
        (label, "running, or would like to" if row.type == "CPU" else f"{row.type}: {row.event}"): row.backends / rows["backends"].sum()
        for label, rows in loads.items() for row in rows.itertuples()
    }  # fmt: skip
    if not shares:
        return None
    every = pd.Series(shares).rename_axis(["label", "pages"])
    most = every.groupby("pages").max().nlargest(SHOWN).index
    frame = every.rename("value").reset_index()
    frame["pages"] = frame["pages"].where(frame["pages"].isin(most), "other waits")
    frame = frame.groupby(["label", "pages"], sort=False, as_index=False)["value"].sum().assign(kind="measured")
    frame = frame.sort_values("pages", key=lambda pages: pages.map({page: n for n, page in enumerate([*most, "other waits"])}), kind="stable")
    frame = frame.sort_values("label", key=lambda labels: labels.map(list(loads).index), kind="stable")
    return charts.stacked_pages(
        frame,
        question="What do active backends do at each step of the sweeps?",
        caption="Shares of the samples. A backend that runs, or waits for a processor, waits for nothing that PostgreSQL knows. Commits are those of the most clients.",
        description=narrate.described(frame.assign(label=frame["label"] + ", " + frame["pages"])),
        quantity="share of active backends",
        facet=None,
        name="scalability-waits",
    )


def switches(chapter: Chapter) -> charts.Figure | None:
    """Sleeps and preemptions per transaction over clients, in both sweeps; None if nobody has counted them."""
    kinds = {"voluntary": "sleeps", "involuntary": "preemptions"}
    rows = [
        _point(_number(arm), kind, statistics.median(table[arm].dropna()), series=series, panel=panel)
        for experiment, panel in turns.SWEEPS.items()
        for kind, observed in chapter.by_provenance(experiment)
        for metric, series in kinds.items()
        for table in [wide(observed, metric).drop(columns=reading.AGAIN, errors="ignore")] for arm in table
    ]  # fmt: skip
    if not rows:
        return None
    frame = pd.DataFrame(rows).sort_values(["panel", "series", "kind", "x"])
    return _over_clients(
        frame,
        question="How often does a backend give up its processor in a transaction?",
        caption="Voluntary context switches (sleeps) and involuntary ones (preemptions) per transaction, as the kernel counts them while the sweeps are timed: medians with intervals.",
        quantity="switches per transaction",
        unit="",
        facet="panel",
        own_scales=True,
        zero=True,
        name="scalability-switches",
    )


def call_chains(found: pd.DataFrame | None) -> charts.Figure | None:
    """What backends were waiting for when they were switched out, as shares."""
    if found is None or found.empty:
        return None
    shares = found["switches"] / found.groupby("load")["switches"].transform("sum")
    frame = found.rename(columns={"load": "label", "cause": "pages"}).assign(value=shares, kind="measured")
    order = found.groupby("cause")["switches"].sum().sort_values(ascending=False).index
    frame = frame.sort_values("pages", key=lambda pages: pages.map(list(order).index), kind="stable").sort_values("label", kind="stable")
    return charts.stacked_pages(
        frame,
        question="What do backends wait for when they give up their processor?",
        caption="Shares of the context switches that perf took, with the most clients, by the innermost function of the call chain that says what is waited for.",
        description=narrate.described(frame.assign(label=frame["label"] + ", " + frame["pages"])),
        quantity="share of context switches",
        facet=None,
        name="scalability-chains",
    )


def wakes(found: pd.DataFrame | None) -> charts.Figure | None:
    """Wake-ups per second, then, and by process now."""
    if found is None:
        return None
    printed = published.table("scalability_idle").value
    rows = [{"label": label, "kind": "printed", "value": printed[row]} for row, label in (("wakeups_before", "9.1, all"), ("wakeups_after", "9.2, all"), ("demanded", "to be demanded"))]
    total = found.drop(columns="role").sum()
    rows += [{"label": f"{row['role']}", "kind": "measured", "value": float(row.drop("role").mean())} for _, row in found.iterrows()]
    rows.append({"label": "all", "kind": "measured", "value": float(total.mean())})
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="How often does an idle server wake up?",
        caption="Voluntary context switches per second of an idle server's processes, as the kernel counts them.",
        description=narrate.described(frame),
        quantity="wake-ups per second",
        unit="",
        zero=True,
        name="scalability-idle",
    )
