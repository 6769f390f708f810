"""Jigsaw answers: partial credit, numbers of permutations, and invalid answers."""

from itertools import permutations

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.rewards import PlacedTiles
from grupo.util.errors import ConfigError


def score(text: str, reference: str = "2 0 3 1"):
    rollout = Rollout((("?", Response((), (), text=text)),))
    return PlacedTiles().score(Task("k", "?", reference), rollout)


def test_every_permutation_has_a_number_of_its_own():
    texts = [" ".join(map(str, order)) for order in permutations(range(4))]
    assert [score(text)["permutation"] for text in texts] == list(map(float, range(24)))


@pytest.mark.parametrize("text", ["", "2 0 3", "2 0 3 3", "1 2 3 4", "2 0 3 1 4"])
def test_other_answers_earn_nothing(text):
    assert score(text) == {"score": 0.0, "permutation": -1.0}


def test_a_reference_answer_that_is_no_permutation_is_refused():
    with pytest.raises(ConfigError, match="reference answer '1 2'"):
        PlacedTiles().validate_tasks([Task("k", "?", "1 2")])
