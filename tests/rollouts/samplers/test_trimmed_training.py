"""Claim of DTO: preference of trimmed chains shortens thinking; accuracy before and after."""

from random import Random

import pytest

from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.methods.simpo import simpo
from grupo.rollouts.samplers import DemonstrationSampler, SolutionColumn, TrimmedThinking
from tests.helpers.toy_claims import answers, sft, trained, untrained

SUMS = [(a, b) for a in range(5) for b in range(5)]
PROMPTS = [f"{a}+{b}=" for a, b in SUMS]


def demonstrations() -> list[Task]:
    """Sums that are solved, and solved again up to four times, before the answer."""
    rng = Random(0)
    tasks = []
    for i in range(2000):
        a, b = SUMS[i % 25]
        chain = "Wait".join([str(a + b)] * rng.choice([1, 2, 3, 4, 5])) + f"|{a + b}"
        tasks.append(Task(PROMPTS[i % 25], PROMPTS[i % 25], a + b, columns={"solution": chain}))
    return tasks


def right(task: Task, rollout: Rollout) -> float:
    return float(rollout.text.rpartition("|")[2] == str(task.reference_answer))


def measure(policy) -> tuple[float, float]:
    """Mean segments of thinking, and accuracy, of 20 answers to each sum."""
    texts = answers(policy, PROMPTS, 20)
    correct = [t.rpartition("|")[2] == str(sum(SUMS[i // 20])) for i, t in enumerate(texts)]
    return sum(t.count("Wait") + 1 for t in texts) / len(texts), sum(correct) / len(texts)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Segments and accuracy before and after 30 steps of SimPO on trimmed chains."""
    folder = tmp_path_factory.mktemp("trimmed")
    model = untrained(folder / "model", ["1+2=3", "Wait", "|", *map(str, range(9))])
    tasks = demonstrations()
    before = trained(
        model,
        folder / "sft",
        tasks,
        sft(DemonstrationSampler(SolutionColumn())),
        prompts_per_step=100,
        max_steps=150,
        max_new_tokens=24,
    )
    before.export(folder / "before")
    after = trained(
        folder / "before",
        folder / "simpo",
        tasks[:25],
        simpo(2.5, 0.4).replace(sampler=TrimmedThinking(("Wait",), 4, 0.5, "", "|")),
        prompts_per_step=25,
        max_steps=30,
        max_new_tokens=24,
        learning_rate=1e-3,
        env=SingleTurn((RewardTerm("right", right),)),
    )
    return measure(before), measure(after)


@pytest.mark.slow
def test_thinking_becomes_shorter_and_accuracy_falls_slightly(measured):
    """Segments fall from 3.0 to 1.1, and accuracy from 0.96 to 0.90: it is not kept, as claimed.

    One run of each, which concludes nothing about other seeds.
    """
    (segments, accuracy), (fewer, new_accuracy) = measured
    assert accuracy > 0.9
    assert fewer < 0.5 * segments
    assert accuracy - 0.15 < new_accuracy < accuracy
