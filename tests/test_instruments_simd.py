"""A sort without the newer instructions: they are left out, or it is told that they can't be."""

import psutil
import pytest
from numpy._core._multiarray_umath import __cpu_baseline__

from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import simd


def test_a_sorter_sorts_for_each_seed_and_is_gone_afterwards():
    before = psutil.Process().children()
    for disabled in ([], simd.features()):
        with simd.sorter(disabled) as sorter:
            assert all(isinstance(sorter.sort(seed), float) for seed in (1, 2))
            assert len(psutil.Process().children()) == len(before) + 1
    assert psutil.Process().children() == before


def test_instructions_that_the_library_cannot_do_without_are_told():
    with (
        pytest.raises(CannotMeasure, match="can't be switched off"),
        simd.sorter(list(__cpu_baseline__)),
    ):
        pass
