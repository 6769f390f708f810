"""Juries and debates: votes by hand, and who hears what."""

from statistics import fmean

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.rewards import Debate, Jury, Statement, majority
from grupo.rewards.pairwise import PairwiseWinRate
from grupo.util.errors import ConfigError

TASK = Task("k", "?")
A, B = (Rollout((("?", Response((number,), (0.0,), text=str(number))),)) for number in (1, 2))


def says(vote: float):
    """A judge that always votes the same."""
    return lambda task, first, second: vote


def repeats(vote: float, heard: list):
    """A debater that always votes the same, and notes the votes that it heard."""

    def debater(task, first, second, statements):
        heard.append([statement.vote for statement in statements])
        return Statement(vote, f"I say {vote}")

    return debater


def follows(task, first, second, statements):
    """A debater that joins the last speaker."""
    return Statement(statements[-1].vote if statements else 0.0)


@pytest.mark.parametrize(
    ("votes", "result"),
    [((1.0, 1.0, 0.0), 1.0), ((0.0, 0.5), 0.0), ((1.0, 0.0), 0.5), ((), 0.5)],
)
def test_the_majority_decides_and_ties_are_ties(votes, result):
    assert majority(votes) == result


def test_a_jury_votes_by_majority_or_mean():
    judges = tuple(map(says, (1.0, 1.0, 0.0)))
    assert Jury(judges)(TASK, A, B) == 1.0
    assert Jury(judges, fmean)(TASK, A, B) == pytest.approx(2 / 3)
    assert PairwiseWinRate(Jury(judges))(TASK, [A, B]) == [1.0, 0.0]


def test_debaters_hear_all_statements_before_them():
    heard: list[list[float]] = []
    debate = Debate((repeats(1.0, heard), repeats(0.0, heard)), rounds=2)
    assert debate(TASK, A, B) == 0.5
    assert heard == [[], [1.0], [1.0, 0.0], [1.0, 0.0, 1.0]]


def test_the_last_statement_of_a_debater_counts():
    # 0, 1, 1 in the first round; the follower joins the others in the second one
    debaters = (follows, repeats(1.0, []), repeats(1.0, []))
    assert Debate(debaters, rounds=1, combine=fmean)(TASK, A, B) == pytest.approx(2 / 3)
    assert Debate(debaters, rounds=2, combine=fmean)(TASK, A, B) == 1.0


def test_a_debate_ends_when_all_agree():
    heard: list[list[float]] = []
    assert Debate((repeats(1.0, heard), follows), rounds=9)(TASK, A, B) == 1.0
    assert len(heard) == 1


def test_nobody_to_vote_is_refused():
    with pytest.raises(ConfigError, match=r"Jury.judges: \(\). Allowed: one judge or more"):
        Jury(())
    with pytest.raises(ConfigError, match=r"Debate.debaters: \(\). Allowed: one debater or more"):
        Debate(())
