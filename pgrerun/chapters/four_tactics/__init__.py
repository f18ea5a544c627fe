"""Chapter `four_tactics`: the memorandum of 1981 on making INGRES faster.

`miniature.py` has the benchmark on the miniature of INGRES. `experiments/` measures, `evidence/`
says what that means for the claims, `charts.py` draws, `sentences.py` puts into words. Both
packages have the same modules: compilation on the miniature and `compilation_today`, `microcode`,
`files` (with `reading`, PostgreSQL's), `operating_system` (with `connections`, how a command gets
to the engine). `sql/` is what PostgreSQL runs.
"""

from pgrerun.chapters.four_tactics import charts, evidence, experiments, miniature, sentences

__all__ = ["charts", "evidence", "experiments", "miniature", "sentences"]
