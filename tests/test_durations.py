"""The table of minutes and disk."""

from bs4 import BeautifulSoup

from pgrerun import parameters
from pgrerun.site import durations


def test_all_chapters_take_the_time_of_all_and_the_disk_of_one(tmp_path):
    first, second, *rest = parameters.chapters()
    taken = [f"{one},ci,{10**8},18.6,2026-11-27" for one in (first, *rest)]
    taken += [
        f"{second},ci,{25 * 10**8},18.6,2026-11-27",
        f"{first},laptop,{10**9},18.6,2026-11-27",
    ]
    file = tmp_path / "disk_space.csv"
    file.write_text("\n".join(["chapter,profile,bytes,postgresql,date", *taken]))
    page = BeautifulSoup(durations.table({first: "The first"}, file), "html.parser")
    heads = [one.get_text() for one in page.select("thead th")]
    cells = [[one.get_text() for one in row.select("td")] for row in page.select("tbody tr")]
    rows = {row[0]: dict(zip(heads, row)) for row in cells}
    assert [rows[one]["ci (GB)"] for one in ("The first", second, "all")] == ["0.1", "2.5", "2.5"]
    minutes = [parameters.info(name).minutes["laptop"] for name in parameters.chapters()]
    assert float(rows["all"]["laptop (min)"]) == sum(minutes)
    # what nobody has measured is not told
    unknown = [rows[one]["laptop (GB)"] for one in ("The first", second, "all")]
    assert unknown == ["1", durations.UNKNOWN, durations.UNKNOWN]
    assert "overnight (GB)" not in heads
