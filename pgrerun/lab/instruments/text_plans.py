"""Plans as EXPLAIN tells them in lines of text: all that there is before PostgreSQL 9.0.

`document` makes of the lines what EXPLAIN (FORMAT JSON) says since, as far as the text has it.
"""

import re
from collections.abc import Sequence
from typing import Any

_NODE = re.compile(
    r"(?P<indent> *)(?:->  )?(?P<title>\S.*?)  "
    r"\(cost=(?P<startup>[\d.]+)\.\.(?P<total>[\d.]+) rows=(?P<rows>\d+) width=(?P<width>\d+)\)"
    r"(?: \(actual time=\S+ rows=(?P<actual>\d+) loops=(?P<loops>\d+)\))?"
    r"(?P<never> \(never executed\))?"
)
_RUNTIME = re.compile(r"Total runtime: ([\d.]+) ms")
_BELOW = re.compile(r" *(?P<kind>InitPlan|SubPlan)( \d+)?( \(returns .*\))?$")
_CONDITION = re.compile(r" *(?P<name>[A-Z][A-Za-z ]+): (?P<value>.*)")
_JOIN = re.compile(r"(Hash|Merge|Nested Loop) ?(Left|Right|Full|IN|Semi|Anti)? ?(Join)?$")
_AGGREGATES = {"HashAggregate": "Hashed", "GroupAggregate": "Sorted", "Aggregate": "Plain"}
# one line for the scan of a relation, with its index if the line has one
_SCAN = re.compile(
    r"(?P<node>[A-Z][A-Za-z ]*? Scan)(?P<backward> Backward)?(?: using (?P<index>\S+))?"
    r" on (?P<relation>\S+)(?: (?P<alias>\S+))?$"
)


def document(lines: Sequence[str]) -> dict[str, Any]:
    """The plan's top node, as a node of EXPLAIN (FORMAT JSON).

    ValueError if the first line is no node.
    """
    top: dict[str, Any] | None = None
    path: list[tuple[int, dict[str, Any]]] = []  # indentation and node, from the top down
    kind = ""
    for line in lines:
        if found := _NODE.match(line):
            node = _node(found)
            indent = len(found["indent"])
            while path and path[-1][0] >= indent:
                path.pop()
            if path:
                above = path[-1][1]
                node["Parent Relationship"] = kind or ("Inner" if "Plans" in above else "Outer")
                above.setdefault("Plans", []).append(node)
            top = top or node
            path.append((indent, node))
            kind = ""
        elif top and (found := _RUNTIME.match(line)):
            top["Total Runtime"] = float(found[1])
        elif found := _BELOW.match(line):
            kind = found["kind"]
            indent = len(line) - len(line.lstrip())
            while len(path) > 1 and path[-1][0] >= indent:
                path.pop()
        elif path and (found := _CONDITION.match(line)):
            path[-1][1][found["name"]] = found["value"]
    if top is None:
        raise ValueError(f"{lines[0]!r} is no line of a plan.")
    return top


def _node(found: re.Match[str]) -> dict[str, Any]:
    executed = {}
    if found["actual"] or found["never"]:
        executed = {
            "Actual Rows": int(found["actual"] or 0),
            "Actual Loops": int(found["loops"] or 0),
        }
    return (
        _titled(found["title"])
        | executed
        | {
            "Startup Cost": float(found["startup"]),
            "Total Cost": float(found["total"]),
            "Plan Rows": int(found["rows"]),
            "Plan Width": int(found["width"]),
        }
    )


def _titled(title: str) -> dict[str, Any]:
    """What JSON has in fields of its own and text in a node's title."""
    if scan := _SCAN.match(title):
        place = "Index Name" if scan["node"] == "Bitmap Index Scan" else "Relation Name"
        node = {"Node Type": scan["node"], place: scan["relation"]}
        if scan["index"]:
            node["Index Name"] = scan["index"]
        if scan["node"] == "Index Scan":
            node["Scan Direction"] = "Backward" if scan["backward"] else "Forward"
        if place == "Relation Name":
            node["Alias"] = scan["alias"] or scan["relation"]
        return node
    if join := _JOIN.match(title):
        node_type = join[1] if join[1] == "Nested Loop" else f"{join[1]} Join"
        # an IN join is what has been called a semi-join since 8.4
        kind = {None: "Inner", "IN": "Semi"}.get(join[2], join[2])
        return (
            {"Node Type": node_type, "Join Type": kind}
            if join[3] or node_type[0] == "N"
            else {"Node Type": title}
        )
    if title in _AGGREGATES:
        return {"Node Type": "Aggregate", "Strategy": _AGGREGATES[title]}
    return {"Node Type": title}
