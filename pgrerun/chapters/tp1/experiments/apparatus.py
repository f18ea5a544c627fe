"""What is run: the rungs of the ladder, and the relations as loaded."""

from collections.abc import Iterator

from pgrerun.chapters.tp1.variants import RUNGS, backends_of, relations
from pgrerun.lab.testbed import Row, Testbed, experiment


@experiment(units={"shared_buffers": "pages", "backends": "backends", "settings": "text"})
def rungs(bed: Testbed) -> Iterator[Row]:
    """What is different on each rung of the ladder; `stage` is the report's beside it."""
    for name, rung in RUNGS.items():
        yield {
            "rung": name,
            "stage": rung.stage,
            "script": f"{rung.script}.pgbench",
            "shared_buffers": rung.buffers,
            "backends": backends_of(bed, rung),
            "settings": ", ".join(f"{setting} = {to}" for setting, to in rung.settings.items()),
        }


@experiment(
    units={
        "tuples": "rows",
        "pages": "pages",
        "tuples_per_page": "rows/page",
        "levels": "levels",
    }
)
def relation_sizes(bed: Testbed) -> Iterator[Row]:
    """The relations and their indices as loaded."""
    bank = relations(bed)
    bank.load(bed.server)
    columns = ["relation", "kind", "tuples", "pages", "tuples_per_page", "levels"]
    facts = bank.facts(bed.server)[columns]  # an index has no rows to a page
    yield from facts.astype(object).where(facts.notna(), None).to_dict("records")
