"""Words of the glossary in a page's prose."""

import importlib.util
from pathlib import Path

from docutils import nodes

ROOT = Path(__file__).resolve().parent.parent
_SPEC = importlib.util.spec_from_file_location(
    "glossary_terms", ROOT / "book" / "_ext" / "glossary_terms.py"
)
glossary_terms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(glossary_terms)


def linked(words, unsaid):
    return glossary_terms.linked(words, glossary_terms.pattern(unsaid), unsaid, "g")


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
