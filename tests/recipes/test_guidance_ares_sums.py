"""The table of ARES: its trigger, the reward of the upper bound, and what the arms share."""

import pytest

from grupo.core.types import Response, Rollout
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

SUMS = load_module_file(ROOT / "recipes" / "guidance" / "ares_sums.py")


def test_the_trigger_is_the_token_before_a_further_working():
    tokenizer = SUMS.word_tokenizer([SUMS.ANSWER])
    triggers = SUMS.ARES.advantage.estimators[1].trigger_tokens
    assert tokenizer.convert_ids_to_tokens(list(triggers)) == [SUMS.AGAIN]


def test_the_upper_bound_is_paid_by_the_difficulty_of_the_sum():
    texts = (": a6 b2T8 is 8", ": a6 b2T8 ! : a6 b2T8 is 8", "! ! ! is 8")
    answers = [Rollout((("?", Response((), (), text=text)),)) for text in texts]
    tasks = [SUMS.DigitSums(*digits, size=1).load()[0] for digits in SUMS.DIFFICULTIES.values()]
    rewards = [[SUMS.workings_by_difficulty(task, x) for x in answers] for task in tasks]
    assert rewards == [[0.0, -0.5, -1.0], [0.0, 0.0, 0.0], [0.0, 0.5, 1.0]]


def test_grpo_lacks_the_reward_of_triggers_only():
    assert SUMS.GRPO.replace(advantage=SUMS.ARES.advantage) == SUMS.ARES
    without = [x for x in SUMS.ARES.advantage.estimators if x != SUMS.ARES.advantage.estimators[1]]
    assert list(SUMS.GRPO.advantage.estimators) == without


@pytest.mark.slow
def test_the_upper_bound_works_longer_on_hard_sums():
    beginner, bound = (SUMS.run("known difficulty", 100, tokens) for tokens in (0, SUMS.MAX_TOKENS))
    assert bound["easy/further"] < beginner["easy/further"]
    assert bound["hard/further"] > beginner["hard/further"]
