"""Plans in lines of text say what plans in JSON say."""

import pytest

from pgrerun.lab.instruments.text_plans import document

LINES = """
Nested Loop Left Join  (cost=8.27..24.83 rows=2 width=8) (actual time=0.010..0.030 rows=3 loops=1)
  Join Filter: (a.x = b.x)
  InitPlan
    ->  Aggregate  (cost=1.00..1.01 rows=1 width=4) (actual time=0.003..0.003 rows=1 loops=1)
          ->  Seq Scan on c  (cost=0.00..1.00 rows=9 width=4) (actual time=0.0..0.1 rows=9 loops=1)
  ->  Index Scan Backward using a_pkey on a  (cost=0.00..8.27 rows=1 width=4) (never executed)
        Index Cond: (x < 3)
  ->  Hash IN Join  (cost=8.27..8.28 rows=1 width=4) (actual time=0.0..0.0 rows=2 loops=3)
        ->  Bitmap Heap Scan on b other  (cost=1.0..2.0 rows=5 width=4)
              ->  Bitmap Index Scan on b_x  (cost=0.00..1.0 rows=5 width=0)
        ->  Hash  (cost=1.00..1.00 rows=9 width=4)
              ->  HashAggregate  (cost=1.00..1.00 rows=9 width=4)
Total runtime: 0.064 ms
""".strip("\n").splitlines()


def test_the_tree_has_each_line_below_its_parent():
    top = document(LINES)

    def types(node):
        return [node["Node Type"], *(types(one) for one in node.get("Plans", []))]

    bitmap = ["Bitmap Heap Scan", ["Bitmap Index Scan"]]
    hashed = ["Hash Join", bitmap, ["Hash", ["Aggregate"]]]
    assert types(top) == ["Nested Loop", ["Aggregate", ["Seq Scan"]], ["Index Scan"], hashed]


def test_a_node_has_what_its_line_says():
    top = document(LINES)
    aggregate, scan, joined = top["Plans"]
    bitmap, hashed = joined["Plans"]
    said = [
        (top, {"Join Type": "Left", "Total Runtime": 0.064, "Join Filter": "(a.x = b.x)"}),
        (top, {"Startup Cost": 8.27, "Total Cost": 24.83, "Plan Rows": 2}),
        (top, {"Actual Rows": 3, "Actual Loops": 1}),
        (aggregate, {"Strategy": "Plain", "Parent Relationship": "InitPlan"}),
        (scan, {"Relation Name": "a", "Index Name": "a_pkey", "Scan Direction": "Backward"}),
        (scan, {"Index Cond": "(x < 3)", "Actual Loops": 0}),
        (joined, {"Join Type": "Semi"}),
        (bitmap, {"Alias": "other"}),
        (bitmap["Plans"][0], {"Index Name": "b_x"}),
        (hashed["Plans"][0], {"Strategy": "Hashed"}),
    ]
    assert [
        (one, node) for node, one in said if any(node[key] != value for key, value in one.items())
    ] == []
    assert "Actual Rows" not in hashed


def test_what_is_no_plan_is_refused():
    with pytest.raises(ValueError, match="no line of a plan"):
        document(["Seq Scan"])
