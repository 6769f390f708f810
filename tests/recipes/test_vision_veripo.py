"""VerIPO on clips: supervised examples, what the verifier sees, and the stages."""

import asyncio
import sys
from random import Random

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

FOLDER = ROOT / "recipes" / "vision"
SEEN = "red 0 3 blue 1 5"


@pytest.fixture
def veripo(monkeypatch):
    """The script, whose neighbour it imports."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return load_module_file(FOLDER / "veripo_clips.py")


def scored(veripo, texts, answer="red"):
    rollouts = [Rollout((("?", Response((1,), (0.0,), text=text)),)) for text in texts]
    return asyncio.run(veripo.ENV.score(Task("k", "?", answer), rollouts))


@pytest.mark.parametrize(
    ("text", "reward", "checks", "contradicts"),
    [
        (f"<think>{SEEN} so red</think><answer>red</answer>", 1.5, (1, 1, 1), 0),
        (f"<think>{SEEN} so blue</think><answer>red</answer>", 1.5, (0, 1, 1), 1),
        (f"<think>{SEEN} so blue</think><answer>blue</answer>", 0.5, (1, 1, 1), 0),
        (f"<think>{SEEN} {SEEN} {SEEN} so red</think><answer>red</answer>", 1.5, (1, 0, 1), 0),
        ("<think>so red</think><answer>red</answer>", 1.5, (1, 1, 0), 0),
        ("<answer>red</answer>", 1.0, (0, 1, 0), 0),
    ],
)
def test_the_reward_does_not_see_what_the_checks_see(veripo, text, reward, checks, contradicts):
    (result,) = scored(veripo, [text])
    assert result.reward == reward
    assert tuple(result.reward_terms[name] for name in veripo.VERIFIER.checks) == checks
    assert result.reward_terms["consistent/contradicts"] == contradicts


def test_a_third_of_the_supervised_answers_contradict_their_thoughts(veripo):
    examples, rng = veripo.OrderExamples(), Random(0)
    things = sys.modules["order_clips"].ordered_clip(6, rng)
    results = scored(veripo, [examples.answer(things, "red", rng) for _ in range(1000)])
    # 0.6 of the answers are no conclusion, of these 0.6 * 0.7 + 0.4 * 0.3 / 3 = 0.46 agree with it
    share = sum(x.reward_terms["consistent/contradicts"] for x in results) / 1000
    assert share == pytest.approx(0.6 * 0.54, abs=0.04)
    right = sum(x.reward_terms["accuracy"] for x in results) / 1000
    assert right == pytest.approx(0.4 * 0.6 + 0.6 * 0.7, abs=0.04)


def test_every_word_of_the_examples_is_a_token(veripo):
    examples = veripo.OrderExamples()
    tokenizer = veripo.MODEL.tokenizer()
    for index in range(20):
        text = examples.draw(Random(index)).answer
        ids = tokenizer(text)["input_ids"]
        assert tokenizer.decode(ids) == text
        assert len(ids) < veripo.POLICY.max_new_tokens


def test_later_stages_have_half_the_learning_rate(veripo):
    stages = veripo.PIPELINE.stages
    assert [stage.name for stage in stages] == ["search", "pairs", "align", "rates", "search_again"]
    rates = [stages[i].recipe.learning_rate for i in (0, 2, 4)]
    assert rates == [veripo.LEARNING_RATE, veripo.LEARNING_RATE / 2, veripo.LEARNING_RATE / 2]
