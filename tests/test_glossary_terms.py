"""Words of the glossary in a page's prose."""

import runpy
from pathlib import Path

from docutils import nodes

EXTENSION = runpy.run_path(
    Path(__file__).resolve().parent.parent / "book" / "_ext" / "glossary_terms.py"
)


def linked(words, unsaid):
    return EXTENSION["linked"](words, EXTENSION["pattern"](unsaid), unsaid, "g")


def test_each_term_is_linked_once_and_the_longer_one_first():
    unsaid = {"index": ("i", "An index."), "clustered index": ("c", "A clustered one.")}
    text = "Clustered indexes? A clustered index, an index."
    made = linked(text, unsaid)
    links = [(one.astext(), one["refuri"]) for one in made if isinstance(one, nodes.reference)]
    assert links == [("clustered index", "g#c"), ("index", "g#i")]
    assert "".join(one.astext() for one in made) == text and not unsaid


def test_a_plural_is_its_term_and_a_part_of_a_word_is_not():
    made = linked("blocks and blockades, block", {"block": ("b", "One.")})
    assert [one.astext() for one in made if one.astext()] == ["blocks", " and blockades, block"]
