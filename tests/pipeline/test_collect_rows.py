"""Rows of collections: which rollouts of a group become a pair."""

import pytest

from grupo.core.types import Action, Rollout
from grupo.pipeline import best_against_worst


def scored(text, reward):
    return Rollout((("?", Action((1,), (0.0,), text=text)),), reward=reward)


@pytest.mark.parametrize("blank", ["", "\n", " \t"])
def test_an_answer_without_a_character_is_no_part_of_a_pair(blank):
    group = [scored(blank, -1.0), scored("5", 0.0), scored("4", 1.0), scored(blank, 2.0)]
    (row,) = best_against_worst(group, bool)
    assert (row["chosen"], row["rejected"]) == ("4", "5")
    assert best_against_worst([scored(blank, 0.0), scored("4", 1.0)], bool) == []
