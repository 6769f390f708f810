"""VerIPO: its loss, the world, and the verifier on texts of it."""

import asyncio
import sys
from dataclasses import replace
from math import log
from typing import Any

import pytest

from grupo.core.types import Response, Rollout
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT
from tests.helpers.preference_batches import loss_and_gradient, pair_batch

FOLDER = ROOT / "recipes" / "pipelines"


@pytest.fixture
def veripo(monkeypatch):
    """The recipe, whose neighbours it imports."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return load_module_file(FOLDER / "veripo.py")


def clips() -> Any:
    return sys.modules["clips"]


def answered(text: str) -> Rollout:
    return Rollout((("?", Response((1,), (0.0,), text=text)),))


def scored(veripo, task, texts):
    env = veripo.base_recipe("model").env
    return asyncio.run(env.score(task, [answered(text) for text in texts]))


def red_task():
    return replace(next(clips().training_tasks()), reference_answer="red")


def test_the_loss_of_the_preference_stage_is_log_2_at_equal_log_probs(veripo):
    method = veripo.pipeline("model").stage("align").recipe.method
    loss, _ = loss_and_gradient(method, pair_batch([0.0, 0.0]))
    assert loss == pytest.approx(log(2))


SEEN = "cat red cat blue"
TWICE = f"{SEEN} so red wait {SEEN} so blue"


@pytest.mark.parametrize(
    ("text", "reward", "checks", "contradicts"),
    [
        (f"<think>{SEEN} so red</think><answer>red</answer>", 1.5, (1, 1, 1), 0),
        (f"<think>{SEEN} so blue</think><answer>red</answer>", 1.5, (0, 1, 1), 1),
        (f"<think>{SEEN} so blue</think><answer>blue</answer>", 0.5, (1, 1, 1), 0),
        (f"<think>{SEEN} {SEEN} {SEEN} so red</think><answer>red</answer>", 1.5, (1, 0, 1), 0),
        (f"<think>{TWICE}</think><answer>red</answer>", 1.5, (0, 1, 1), 1),
        ("<think>so red</think><answer>red</answer>", 1.5, (1, 1, 0), 0),
        ("<think></think><answer>red</answer>", 1.0, (0, 1, 0), 0),
        ("<answer>red</answer>", 1.0, (0, 1, 0), 0),
    ],
)
def test_the_reward_does_not_see_what_the_checks_see(veripo, text, reward, checks, contradicts):
    (result,) = scored(veripo, red_task(), [text])
    terms = result.reward_terms
    assert result.reward == reward
    assert tuple(terms[name] for name in veripo.VERIFIER.checks) == checks
    assert terms["consistent/contradicts"] == contradicts


@pytest.mark.slow
def test_a_quarter_of_the_demonstrations_contradict_their_thoughts(veripo):
    tasks = clips().supervised_tasks()[:200]
    results = [
        result for task in tasks for result in scored(veripo, task, clips().demonstrations(task))
    ]
    share = sum(x.reward_terms["consistent/contradicts"] for x in results) / len(results)
    assert 0.2 < share < 0.3
    assert 0.55 < sum(x.reward_terms["accuracy"] for x in results) / len(results) < 0.75


def test_questions_have_one_animal_with_two_colours(veripo):
    for task in clips().all_tasks()[:100]:
        words = str(task.prompt).split()
        place, animal = words[-3:-1]
        colours = [colour for name, colour in zip(words[:8:2], words[1:8:2], strict=True)
                   if name == animal]  # fmt: skip
        assert len(set(colours)) == len(colours) == 2
        assert task.reference_answer == colours[0 if place == "first" else 1]
