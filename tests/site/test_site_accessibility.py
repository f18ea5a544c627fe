"""Every page as assistive software meets it: axe finds nothing serious in either theme, wide or
narrow.
"""

import importlib.resources
import json

import pytest

pytestmark = pytest.mark.browser

AXE = importlib.resources.files("axe_core_python").joinpath("axe.min.js")
# a drawn chart is hidden behind its words, and is most of a page's elements
FOUND = """axe.run({exclude: [['.vl-live svg']]}, {resultTypes: ['violations']})
  .then(found => found.violations
  .filter(one => ['serious', 'critical'].includes(one.impact))
  .map(one => ({rule: one.id, help: one.help,
    where: one.nodes.slice(0, 3).map(node => node.html.slice(0, 200))})))"""


def violations(page) -> list[dict]:
    page.at_rest().run(AXE.read_text() + ";0")
    return page.run(FOUND)


@pytest.mark.parametrize(
    "width, dark", [(1440, False), (360, True)], ids=["wide and light", "phone and dark"]
)
def test_no_page_has_a_serious_violation(browser, looked_at, width, dark):
    found = {}
    with browser.page(width=width, dark=dark) as page:
        for path in looked_at:
            found[path.name] = violations(page.open(path).drawn())
    assert not any(found.values()), json.dumps(
        {name: one for name, one in found.items() if one}, indent=1
    )


def test_a_picture_without_words_is_found_and_a_fade_is_not(browser, toy_site):
    with browser.page() as page:
        page.open(toy_site / "index.html").drawn()
        page.run("""(async () => {
          const words = document.createElement('p');
          words.textContent = 'in the middle of a fade';
          words.animate([{color: 'white', background: 'white'},
            {color: 'black', background: 'white'}], 500);
          document.querySelector('article').append(words, document.createElement('img'));
        })()""")
        assert [one["rule"] for one in violations(page)] == ["image-alt"]
