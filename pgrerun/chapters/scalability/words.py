"""Sentences that only this chapter says; judgements are put into words by `narrate`."""

import pandas as pd

from pgrerun import narrate, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.scalability import commit, cores, locks, reading, turns, writing
from pgrerun.chapters.scalability.bench import TALK_CLIENTS, busy, processors
from pgrerun.chapters.scalability.idle import LAP



def noise(chapter: Chapter) -> narrate.Sentence | None:
    """The noise floor from the number of clients that ran twice."""
    frame = chapter.table("read", "throughput")
    if frame.empty:
        return None
    return narrate.noise(statistics.noise_floor(frame[reading.clients(busy(chapter))], frame[reading.AGAIN]))


def law(fitted: statistics.USL | None, what: str) -> narrate.Sentence | None:
    """What the universal scalability law makes of a sweep."""
    if fitted is None:
        return None
    per_cent = [narrate.interval(x.times(100), "%") for x in (fitted.sigma, fitted.kappa)]
    return narrate.Sentence(
        f"The universal scalability law, fitted to the {what}: contention {per_cent[0]}, coherence {per_cent[1]} per client. {_peak(fitted.peak)}"
    )


def _peak(peak: statistics.Interval) -> str:
    """Where the law puts the peak, as far as its interval has ends."""
    if peak.estimate <= 1:
        return "It finds no peak beyond one client."
    if peak.estimate == float("inf"):
        return "It finds no peak."
    if peak.high == float("inf"):
        return f"It puts the peak at {narrate.count(round(peak.estimate), 'client')}, but a curve without a peak fits as well."
    if peak.low < 1:
        return f"It puts the peak at {narrate.number(peak.high, 1)} clients at most."
    return f"It puts the peak at {narrate.interval(peak)} clients."


def knee(found: pd.DataFrame | None, number: int | None = None) -> narrate.Sentence | None:
    """What most backends do at the largest number of clients."""
    if found is None or found.empty:
        return None
    rows = found[found["clients"] == (number or found["clients"].max())] if "clients" in found else found
    rows = rows.groupby(["type", "event"], as_index=False)["backends"].sum().sort_values("backends", ascending=False)
    active = rows["backends"].sum()
    running = rows.loc[rows["type"] == "CPU", "backends"].sum()
    waiting = rows[rows["type"] != "CPU"].head(2)
    inside = rows.loc[~rows["type"].isin(["CPU", "Client"]), "backends"].sum()
    said = f"On average {narrate.number(active, 1)} backends are active, and {narrate.number(running, 1)} of them run or would like to, on {narrate.count(processors(), 'processor')}"
    if waiting.empty:
        return narrate.Sentence(f"{said}; none waits for anything that PostgreSQL knows: the knee is the number of processors, which pgbench shares with them.")
    most = " and ".join(f"{row.type}:{row.event} ({narrate.number(row.backends, 2)})" for row in waiting.itertuples())
    cause = "the knee is the number of processors, which pgbench shares with them" if running > 2 * inside else "the knee is a wait inside PostgreSQL"
    return narrate.Sentence(f"{said}; the others wait, most for {most}: {cause}.")


def switched(chapter: Chapter, experiment: str, found: pd.DataFrame | None = None) -> narrate.Sentence | None:
    """A sweep's context switches at its first step, where it bends and at its last, read beside the last step's wait events (`found`)."""
    profile = turns.profile(chapter, experiment)
    if profile is None:
        return None
    bend = turns.bend(chapter, experiment)
    shown = profile[profile["clients"].isin([profile["clients"].min(), bend, profile["clients"].max()])]
    steps = [
        f"with {narrate.count(row.clients, 'client')} a backend sleeps {narrate.interval(row.voluntary)} times and is preempted {narrate.interval(row.involuntary)} times, for {narrate.number(row.messages.estimate, 1)} messages"
        for row in shown.itertuples()
    ]
    near = f"The throughput of {turns.SWEEPS[experiment]} comes near its greatest with {narrate.count(bend, 'client')}."
    often, said = _beyond(profile.iloc[-1])
    beyond = _more_than_linear(chapter.ratio(experiment, "throughput", reading.clients(bend), reading.clients(1)), bend, profile)
    return narrate.Sentence(" ".join(filter(None, [near, f"In a transaction, {'; '.join(steps)}.", beyond, said, _inside(found, often)])))


def _more_than_linear(gain: statistics.Interval, many: int, profile: pd.DataFrame) -> str:
    """That `many` clients do more than so many times the work of one, and whether the switches tell why; empty if they don't."""
    if not gain.low > many > 1:
        return ""
    told = f"That many do {narrate.interval(gain)} times what one does, which is more than linear"
    sleeps = profile.set_index("clients")["voluntary"]
    if sleeps[many].high < sleeps[1].low:
        return f"{told}: one client and its backend take turns, and a processor that was put to sleep has to be woken at every turn; with more of them it sleeps less often."
    return f"{told}, and not because backends sleep less often."


def _beyond(last: pd.Series) -> tuple[bool, str]:
    """Whether a backend sleeps more often than messages come with the most clients, and what the switches say."""
    usual = turns.BEYOND * last["messages"].estimate
    if last["voluntary"].low > usual:
        return True, "With the most clients sleeps are more than the messages: the others are waits inside PostgreSQL."
    if last["voluntary"].low + last["involuntary"].low > usual:
        return False, "With the most clients sleeps are no more than the messages, but switches are: the processor is taken from backends that could go on."
    return False, "With the most clients switches are no more than the messages: sleeps for anything but the next message are few."


def _inside(found: pd.DataFrame | None, often: bool) -> str:
    """What the wait events say of the most clients, and what that makes of sleeps inside PostgreSQL that are many (`often`) or few."""
    if found is None or found.empty:
        return ""
    rows = found[found["clients"] == found["clients"].max()] if "clients" in found else found
    waits = rows[~rows["type"].isin(["CPU", "Client"])].sort_values("backends", ascending=False)
    share = waits["backends"].sum() / rows["backends"].sum()
    cause = {
        (True, True): "Both name the same cause.",
        (True, False): "So these waits are many and short.",
        (False, True): "So these waits are few and long.",
        (False, False): "Neither shows much of a wait inside PostgreSQL: what backends have to wait for is their client, or a processor.",
    }[often, bool(share >= LONG)]
    if waits.empty:
        return f"In the samples of wait events, no active backend waits inside PostgreSQL then. {cause}"
    most = waits.iloc[0]
    return f"In the samples of wait events, {narrate.number(100 * share, 1)} % of the active backends wait inside PostgreSQL then, most of them for {most['type']}:{most['event']}. {cause}"


LONG = 0.1  # share of the active backends in a wait that is worth naming


def chains(found: pd.DataFrame | None) -> narrate.Sentence | None:
    """What perf's call chains say that each load's backends wait for beside their clients and a processor."""
    if found is None or found.empty:
        return None
    told = []
    for load, rows in found.groupby("load", sort=False):
        total, others = rows["switches"].sum(), rows[~rows["cause"].isin(["the client", turns.TURN, "other"])]
        most = f", most often for {others.iloc[0]['cause']}" if len(others) else ""
        share = 100 * others["switches"].sum() / total
        told.append(f"{narrate.number(share, 1)} % of the {load}' {narrate.count(total, 'switch')} taken are waits inside PostgreSQL{most}")
    return narrate.Sentence(f"By their call chains, {', and '.join(told)}.")


def constants(chapter: Chapter) -> narrate.Sentence | None:
    """The measured costs that the simulation runs on."""
    each = cores.calibrated(chapter)
    if each is None:
        return None
    medians = {name: statistics.median([getattr(costs, name) * 1e6 for costs in each]) for name in ("work", "visit", "line", "switch", "rouse")}
    told = {name: narrate.interval(value, "µs") for name, value in medians.items()}
    return narrate.Sentence(
        f"Measured here: a lookup's work takes {told['work']} of a processor, a visit of the lock table {told['visit']}, a cache line from another processor {told['line']}, "
        f"and a sleep with its end {told['switch']} of processor time, {told['rouse']} until the sleeper runs."
    )


def line(chapter: Chapter, swept: pd.DataFrame | None) -> narrate.Sentence | None:
    """What a cache line costs here, and what it must have cost there."""
    if swept is None:
        return None
    gains, there = cores.gains_by_line(swept), cores.talks_line(swept)
    here = statistics.median([costs.line * 1e9 for costs in cores.calibrated(chapter)])
    return narrate.Sentence(
        f"Here a line takes {narrate.interval(here, 'ns')}. The simulated gain comes nearest to the talk's {narrate.number(cores.TALK['gain'])} "
        f"where a line takes {narrate.number(there * 1e9)} ns: it is {narrate.number(gains[there], 1)} then."
        + ("" if gains.max() >= cores.TALK["gain"] else " No line that was tried reaches the talk's.")
    )


def flat(simulated: pd.DataFrame | None) -> narrate.Sentence | None:
    """Where each simulated release is fastest, and what it keeps of that."""
    if simulated is None:
        return None
    told = []
    for release in cores.RELEASES:
        throughput = cores.curve(simulated, release)
        fastest = f"{'the ' if release == cores.FIRST else ''}{release} is fastest with {narrate.count(int(throughput.idxmax()), 'client')}"
        kept = f" and keeps at least {narrate.number(100 * cores.kept_beyond(simulated, release), 0)} % of that with more clients than processors"
        told.append(fastest + (", as many as were tried" if throughput.idxmax() == throughput.index.max() else kept))
    return narrate.Sentence(f"Simulated with dear cache lines, {'; '.join(told)}.")


def per_flush(chapter: Chapter) -> narrate.Sentence | None:
    """Commits that one flush carries, from one client to many."""
    sizes = commit.sizes(chapter)
    found = [chapter.median("commit sweep", "per flush", commit.swept(commit.PLAIN, number)) for number in (sizes[0], sizes[-1])]
    if None in found:
        return None
    return narrate.Sentence(f"Commits that one flush carries: {narrate.interval(found[0])} with one client, {narrate.interval(found[1])} with {sizes[-1]}.")


def waited(chapter: Chapter) -> narrate.Sentence | None:
    """What commit_delay, and not waiting at all, do to the throughput of the most clients."""
    most = commit.sizes(chapter)[-1]
    found = [chapter.ratio("commit sweep", "throughput", commit.swept(way, most), commit.swept(commit.PLAIN, most)) for way in (commit.DELAYED, commit.NOT_WAITED)]
    if None in found:
        return None
    base = f"{most} clients as it comes"
    delayed = narrate.ratio_sentence(found[0], "throughput", f"{most} clients with {commit.DELAYED}", base)
    return delayed + narrate.ratio_sentence(found[1], "throughput", f"{most} clients that don't wait for the flush", base)


def queue(simulated: pd.DataFrame | None) -> narrate.Sentence | None:
    """At which of the simulated flush times the talk's gain comes out."""
    if simulated is None:
        return None
    many = simulated[simulated["clients"] == TALK_CLIENTS].pivot(index="flush", columns="way", values="throughput")
    gains = many["together"] / many["queue"]
    each = ", ".join(f"{narrate.number(gain)} where a flush takes {narrate.number(flush * 1e3)} ms" for flush, gain in gains.items())
    return narrate.Sentence(
        f"Simulated with {TALK_CLIENTS} clients, what 9.2 gains over 9.1's queue is {each}. "
        "How long the talk's disk took for a flush isn't said: it is the constant that decides, and that the simulation can't know."
    )


def off_the_fast_path(chapter: Chapter) -> narrate.Sentence | None:
    """What the lock table costs here, beside the share of locks that are on the fast path."""
    found = chapter.median("locks", "fastpath", locks.TABLE)
    gained = locks.gained(chapter, locks.HELD)
    if found is None or gained is None:
        return None
    said = f"On the server with few slots {narrate.number(100 * found.estimate, 0)} % of the relation locks are on the fast path."
    held = narrate.ratio_sentence(gained, "throughput", "readers on the fast path", "the same readers while another session has SHARE locks on the relations")
    return narrate.Sentence(f"{said} {held}")


def messages(chapter: Chapter) -> narrate.Sentence | None:
    """What messages about other relations, and about the one that is read, cost those who look up."""
    told = {reading.TOLD_OTHERS: "lookups while another relation is changed", reading.TOLD_READERS: "lookups while the relation that they read is changed"}
    found = {arm: chapter.ratio("schema changes", "throughput", arm, reading.TOLD_NOBODY) for arm in told}
    if None in found.values():
        return None
    base = "lookups while the same changes are rolled back"
    return narrate.Sentence(" ".join(narrate.ratio_sentence(found[arm], "throughput", words, base) for arm, words in told.items()))


def idle_connections(chapter: Chapter) -> narrate.Sentence | None:
    """What connections that do nothing cost those at work."""
    found = chapter.ratio("idle connections", "throughput", writing.IDLE, writing.NOBODY)
    if found is None:
        return None
    number = chapter.parameters.idle_connections
    return narrate.ratio_sentence(found, "throughput", f"writers beside {narrate.count(number, 'idle connection')}", "the same writers alone")


def hurried(watched) -> narrate.Sentence | None:
    """How the idle server was made to fall asleep in the time there was."""
    if watched is None:
        return None
    if not watched.hurried:
        return narrate.Sentence("The idle server has PostgreSQL's defaults, and was left alone until its background writer had looked at every buffer once.")
    return narrate.Sentence(
        f"A background writer looks at every buffer once before it lies down, which takes it {narrate.number(LAP, 0)} seconds. This run has no such time, so the idle server's was told to "
        "look at none; everything else is PostgreSQL's default. With more `idle_seconds` the default is measured."
    )
