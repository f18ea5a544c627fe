"""`%%postquel`: a notebook cell in QUEL.

    magic.register(chapter.server, show=table)

and then, in a cell of its own,

    %%postquel
    range of t is tenk1
    retrieve (t.two, n = count(t.unique1 by t.two)) where t.unique1 < 4
"""

from collections.abc import Callable
from typing import Any

import pandas as pd
from IPython.core.getipython import get_ipython
from IPython.display import display

from pgrerun.lab.quel.session import Session, described

_SHOWN = 20  # tuples of an answer


def register(
    server: Any, show: Callable[[pd.DataFrame, str], Any] = lambda frame, caption: frame
) -> Session:
    """Let cells that begin with %%postquel run on the server, on one connection of their own.

    server: anything with `connect()`. show: makes of a frame and a caption what is displayed.
    Gives the session, whose range variables hold from cell to cell.
    """
    session = Session(server.connect())
    put: Callable[[Any], Any] = display  # IPython has no types for it

    def postquel(line: str, cell: str) -> None:
        answers = session.run(cell)
        put(show(described(answers), "What was run"))
        for answer in answers:
            if answer.columns:
                more = answer.count is not None and answer.count > _SHOWN
                rest = f", the first {_SHOWN} of {answer.count}" if more else ""
                put(show(answer.frame.head(_SHOWN), f"Answer{rest}"))

    shell: Any = get_ipython()
    if shell is not None:
        shell.register_magic_function(postquel, magic_kind="cell", magic_name="postquel")
    return session
