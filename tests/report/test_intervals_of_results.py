"""Every interval of every kind of result contains its value."""

import pytest
from random_results import wrong_intervals
from slow_cases import slow_except_first


@pytest.mark.parametrize("count", slow_except_first([60, 600]))
def test_intervals__contain_their_values(count: int) -> None:
    counts, wrong = wrong_intervals(count)
    assert len(counts) > 15
    assert not wrong
