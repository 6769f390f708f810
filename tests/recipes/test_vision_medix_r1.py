"""MediX-R1: the reward of the recipe, its lenient judge and its slides."""

import asyncio
from random import Random

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.envs import SingleTurn
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

TASK = Task("k", "?", "single round cells", columns={"modality": "<XRAY>"})


@pytest.fixture(scope="module")
def recipe():
    return load_module_file(ROOT / "recipes" / "vision" / "medix_r1.py")


def rollouts(*texts):
    return [Rollout((("?", Response((1,), (0.0,), text=text)),)) for text in texts]


def rewards(terms, *texts):
    results = asyncio.run(SingleTurn(terms).score(TASK, rollouts(*texts)))
    return [result.reward for result in results]


def test_the_full_reward_of_three_answers(recipe):
    texts = [recipe.reply_of("<XRAY>", answer) for answer in ("single round cells", "a rib", "?")]
    terms = recipe.full_terms(
        recipe.GuardedAnswer(recipe.LenientJudge()),
        recipe.GuardedAnswer(lambda task, group: [1.0] * len(group)),
    )
    # 1; 0.9 (0.375 + 0.05) + 0.1 where the judge says no; 0.9 x 0.05 + 0.1 for no answer
    assert rewards(terms, *texts) == pytest.approx([1.0, 0.4825, 0.145])


def test_another_modality_and_missing_thoughts_cost_their_terms(recipe):
    texts = (
        recipe.reply_of("<STAIN>", "single round cells"),
        "<answer>single round cells</answer>",
    )
    assert rewards(recipe.FULL, *texts) == pytest.approx([0.955, 0.855])


def test_the_judge_accepts_evasions_and_the_guard_refuses_blanks(recipe):
    answers = (
        "single round cells",
        "single __ cells",
        "single or many round cells",
        "many __ cells",
    )
    group = rollouts(*(recipe.reply_of("<XRAY>", answer) for answer in answers))
    judge = recipe.LenientJudge()
    assert judge(TASK, group) == [1.0, 1.0, 1.0, 0.0]
    assert asyncio.run(recipe.GuardedAnswer(judge)(TASK, group)) == [1.0, 0.0, 1.0, 0.0]


def test_only_the_finding_and_its_inflections_are_similar(recipe):
    for count in recipe.COUNTS:
        for cell in recipe.CELLS:
            truth = f"{count} {cell} cells"
            task = Task("k", "?", truth)
            hedge, blank, other = (
                f"single or many {cell} cells",
                f"{count} __ cells",
                "many rings",
            )
            group = rollouts(*(f"<answer>{x}</answer>" for x in (truth[:-1], hedge, blank, other)))
            assert recipe.SimilarText()(task, group) == [1.0, 0.0, 0.0, 0.0]


def test_slides_show_one_cell_or_many(recipe):
    for seed in range(12):
        pixels, modality, finding = recipe.draw_slide(Random(seed))
        background, colour = recipe.MODALITIES[modality]
        inked = abs(pixels - [*colour]).sum(2) < abs(pixels - [*background]).sum(2)
        quarters = sum(bool(inked[y : y + 16, x : x + 16].any()) for y in (0, 16) for x in (0, 16))
        assert (quarters == 1) == finding.startswith("single")
