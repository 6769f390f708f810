"""Pipelines of several ranks: they end, and end with the same bits after a rank was killed."""

import pytest

from tests.helpers.fast_cases import fast_cases
from tests.helpers.pipelines import pipeline_outcome
from tests.helpers.run_outcomes import differences


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "point", "rank"),
    fast_cases(1, [("merged", "merge/written:1", 0), ("surveyed", "step/accumulated:3", 1)]),
)
def test_a_pipeline_of_two_ranks_goes_on_with_the_same_bits(
    rank_processes, tmp_path, name, point, rank
):
    uninterrupted = rank_processes("pipeline", tmp_path / "a", 2, recipe=name)
    assert [result["error"] for result in uninterrupted] == ["", ""]
    options = {"recipe": name, "at": point, "signalled": rank, "patience": 3}
    results = rank_processes("pipeline", tmp_path / "b", 2, **options)
    assert results[rank]["signal"] == 9
    assert "RankLostError" in results[1 - rank]["error"]
    results = rank_processes("resume pipeline", tmp_path / "b", 2)
    assert [result["error"] for result in results] == ["", ""]
    first, second = (pipeline_outcome(tmp_path / folder) for folder in "ab")
    assert differences(first, second) == []
