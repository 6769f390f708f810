"""ROUGE-L."""

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.rewards import RougeL


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("police kill the gunman", 6 / 8),  # police the gunman: 2 x 3 / (4 + 4)
        ("the gunman kill police", 4 / 8),
        ("Police killed the gunman!", 1.0),
        ("", 0.0),
    ],
)
def test_the_longest_common_subsequence_of_words_counts(text, score):
    rollout = Rollout((("?", Response((1,), (0.0,), text=text)),))
    assert RougeL().score(Task("k", "?", "police killed the gunman"), rollout) == score
