"""What chapter `four_tactics` measures: on INGRES of 1981 itself, and of each tactic today."""
