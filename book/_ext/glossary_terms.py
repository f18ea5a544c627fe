"""Sphinx extension: the first time that a page uses a word of the glossary, it says what it means.

The word becomes a link to its entry, with the entry as its title. Headings, code, links and what
the record's own markup shows stay as they are.
"""

import re
from collections.abc import Iterable, Iterator

from docutils import nodes

GLOSSARY = "glossary"
_PAGES = ("results/", "what-to-do", "measure")
_KEPT = (nodes.FixedTextElement, nodes.literal, nodes.math, nodes.reference, nodes.title)


def setup(app):
    app.connect("doctree-resolved", link_terms)


def link_terms(app, doctree, docname) -> None:
    if not docname.startswith(_PAGES) or GLOSSARY not in app.env.found_docs:
        return
    if not hasattr(app, "glossary"):  # the same for every page of a build
        app.glossary = entries(app.env.get_doctree(GLOSSARY))
    address = app.builder.get_relative_uri(docname, GLOSSARY)
    terms, unsaid = pattern(app.glossary), dict(app.glossary)
    for paragraph in list(doctree.findall(nodes.paragraph)):
        for text in list(paragraph.findall(nodes.Text)):
            if not any(isinstance(above, _KEPT) for above in _above(text, paragraph)):
                text.parent.replace(text, linked(text.astext(), terms, unsaid, address))


def entries(glossary: nodes.document) -> dict[str, tuple[str, str]]:
    """Anchor and meaning of each term of the glossary's page, by the term in small letters."""
    found = {}
    for item in glossary.findall(nodes.definition_list_item):
        [meaning] = item.findall(nodes.definition)
        for term in item.findall(nodes.term):
            found[term.astext().lower()] = (term["ids"][0], " ".join(meaning.astext().split()))
    return found


def pattern(terms: Iterable[str]) -> re.Pattern[str]:
    """Any of the terms, the longer one where two begin alike, in the singular or the plural."""
    longest = sorted(map(re.escape, terms), key=len, reverse=True)
    return re.compile(rf"(?<![\w-])({'|'.join(longest)})s?(?![\w-])", re.IGNORECASE)


def linked(
    words: str, terms: re.Pattern[str], unsaid: dict[str, tuple[str, str]], address: str
) -> list[nodes.Node]:
    """Words in which each term that wasn't said yet is a link; it is taken out of `unsaid`."""
    made: list[nodes.Node] = []
    done = 0
    for found in terms.finditer(words):
        if entry := unsaid.pop(found.group(1).lower(), None):
            anchor, meaning = entry
            made += [
                nodes.Text(words[done : found.start()]),
                nodes.reference(
                    "",
                    found.group(),
                    refuri=f"{address}#{anchor}",
                    reftitle=meaning,
                    internal=True,
                    classes=["term"],
                ),
            ]
            done = found.end()
    return [*made, nodes.Text(words[done:])]


def _above(node: nodes.Node, top: nodes.Node) -> Iterator[nodes.Node]:
    while node is not top:
        node = node.parent
        yield node
