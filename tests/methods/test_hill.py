"""HiLL: hand-computed hint rewards and training of a hinter and a reasoner."""

from math import exp, log, sqrt

import pytest
import torch
from torch import Tensor

from grupo.algo.advantages import chain, identity
from grupo.algo.losses import NLL, Clip
from grupo.algo.minibatches import SingleUpdate, Updates
from grupo.core.batch import Batch
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.methods.hill import HintRoleAdvantage, hill
from grupo.models.base import AuxModel
from grupo.models.causal_lm import CausalLM
from grupo.models.multi_policy_spec import MultiPolicy, RolePolicy
from grupo.recipe import Recipe
from grupo.rewards import ExactMatch
from grupo.rollouts.evaluate import evaluate
from grupo.rollouts.samplers import DemonstrationSampler, GroupSampler, with_self_hints
from grupo.rollouts.samplers.self_hint import HintPrompt, prompt_without_hint
from grupo.testing.batches import make_batch
from grupo.training.learner import Learner
from tests.helpers import tiny_lm

T = 0.3


def hinted_group(tries, refused=(), off=0.0, group=0):
    """A group of two failed attempts, followed by each hint and the rewards of its attempts.

    The log-probability per token is -1, and `off` higher given the plain prompt.
    """
    rows = [(0.0, 0.0, 0, 0.0)] * 2
    for number, rewards in enumerate(tries, 1):
        rows.append((0.0, 1.0, number, float(number in refused)))
        rows += [(r, 0.0, number, 0.0) for r in rewards]
    reward, role, hint, refusal = zip(*rows, strict=True)
    return make_batch(
        group=[group] * len(rows),
        reward=list(reward),
        reward_terms={"is_hint": role, "hint_index": hint, "hint_rejected": refusal},
        signals={"logp@unhinted": [[-1.0 + off]] * len(rows)},
    )


def hint_rewards(batch) -> list[float]:
    return HintRoleAdvantage(T).hint_value(batch)[batch.reward_terms["is_hint"] > 0].tolist()


def test_hint_reward_peaks_at_half_success_and_full_transfer():
    half = [1.0] * 4 + [0.0] * 4
    two_role_policy_spec = 1 - 2 / 2**8
    assert hint_rewards(hinted_group([half])) == pytest.approx([two_role_policy_spec])
    assert hint_rewards(hinted_group([half], off=-0.3)) == pytest.approx(
        [two_role_policy_spec * exp(-1)]
    )  # 0.365
    assert hint_rewards(hinted_group([half], off=0.1)) == pytest.approx(
        [two_role_policy_spec]
    )  # a negative reliance is no bonus
    policy_spec = 1 - 0.125**8 - 0.875**8
    assert hint_rewards(hinted_group([half, half[:1] + [0.0] * 7])) == pytest.approx(
        [two_role_policy_spec, policy_spec]
    )


def test_useless_hint_has_value_zero_and_rejected_hint_negative():
    assert hint_rewards(hinted_group([[0.0] * 8, [1.0] * 8, []], refused=(3,))) == [0.0, 0.0, -0.2]


def test_reliance_uses_correct_attempts_only():
    batch = hinted_group([[1.0, 0.0]])
    unhinted = torch.tensor([[-9.0], [-9.0], [-9.0], [-1.0 - log(2) * T], [-7.0]])
    batch.signals["logp@unhinted"] = unhinted.double()
    assert hint_rewards(batch) == pytest.approx([0.5 * 0.5])  # n = 2, p = 1/2: 1 - 2/4; e^-ln 2


def test_hints_and_attempts_are_compared_in_separate_groups():
    batch = hinted_group([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0, 0.0, 1.0]])
    # hint rewards are 1/2, 0 and 1 - (3^4 + 1)/4^4 = 174/256: the third is the best
    R = (0.5, 0.0, 174 / 256)
    mean = sum(R) / 3
    std = sqrt(sum((r - mean) ** 2 for r in R) / 2) + 1e-6
    A = HintRoleAdvantage(T)(batch.reward, batch).tolist()
    assert [A[2], A[5], A[8]] == pytest.approx([(r - mean) / std for r in R])
    assert A[:2] == A[3:5] == A[6:8] == [0.0, 0.0]
    assert A[9:] == pytest.approx([x / (0.5 + 1e-6) for x in (-0.25, -0.25, -0.25, 0.75)])


def test_ties_between_hints_select_first():
    batch = hinted_group([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    A = HintRoleAdvantage(T)(batch.reward, batch).tolist()
    root = 0.5 / (sqrt(0.5) + 1e-6)
    assert A[6:8] == pytest.approx([-root, root])
    assert A[9:] == [0.0, 0.0]


def test_batch_without_hints_reduces_to_grpo():
    named = {name: [0.0, 0.0] for name in ("is_hint", "hint_index", "hint_rejected")}
    batch = make_batch(
        [0, 0], [1.0, 0.0], reward_terms=named, signals={"logp@unhinted": [[0.0]] * 2}
    )
    root = 0.5 / (sqrt(0.5) + 1e-6)
    assert HintRoleAdvantage(T)(batch.reward, batch).tolist() == pytest.approx([root, -root])


def test_hints_and_attempts_have_equal_total_weight():
    batch = hinted_group([[1.0, 0.0], [0.0, 0.0]]).with_advantage(hill().advantage)
    # hints: 1/2 of two each; attempts: two behind the first; the others have no advantage
    assert hill().aggregation(batch)[:, 0].tolist() == [0, 0, 0.5, 0.5, 0.5, 0.5, 0, 0]


def test_defaults_match_release():
    assert hill().sampler == with_self_hints(GroupSampler(8), num_hints=4)
    assert hill().loss == Clip(0.2, 0.28)


ANSWER = {"a": "0", "b": "1"}  # the hint that leads to each answer
WRONG = "2"


class PretrainingTasks:
    """Demonstrations: wrong without a hint, correct half the time with it; hints are random."""

    def load(self):
        alone = [Task("alone", "?", WRONG)] * 4
        hinted = [
            Task(f"?{h} {i}", f"?{h}", (d, WRONG)[i]) for h, d in ANSWER.items() for i in (0, 1)
        ]
        hints = [Task(f"={d} {h}", f"={d}", h) for d in ANSWER.values() for h in ANSWER]
        return [*alone, *hinted, *hints]


class Unsolved:
    """Two tasks with the same prompt."""

    def load(self):
        return [Task(d, "?", d, columns={"solution": d}) for d in ANSWER.values()]


def right_answer(task):
    return [task.reference_answer]


@pytest.fixture(scope="module")
def pretrained_model(tmp_path_factory) -> str:
    home = tmp_path_factory.mktemp("pupil")
    method = Method(sampler=DemonstrationSampler(right_answer), advantage=identity, loss=NLL())
    trainer = learner(
        policy_spec(str(tiny_lm.save_model(home / "start"))),
        PretrainingTasks(),
        method,
        60,
        learning_rate=1e-2,
        prompts_per_step=12,
    )
    for _ in range(60):
        trainer.step()
    trainer.policy.export(home / "model")
    return str(home / "model")


def policy_spec(folder):
    return CausalLM(folder, max_new_tokens=2)


def two_role_policy_spec(folder):
    """A reasoner and a hinter, trained from the same weights."""
    return MultiPolicy(policy_spec(folder), (RolePolicy("hinter", policy_spec(folder)),))


def learner(policy, tasks, method, steps, **more) -> Learner:
    return Learner(
        Recipe(
            policy=policy,
            env=SingleTurn((RewardTerm("right", ExactMatch()),)),
            tasks=tasks,
            eval_tasks=0,
            method=method,
            aux_models=(AuxModel("unhinted", "policy", prompt_without_hint),),
            max_steps=steps,
            **more,
        )
    )


def negative(x: Tensor, batch: Batch) -> Tensor:
    return -x


ASKING = with_self_hints(
    GroupSampler(8),
    4,
    hint_prompt=HintPrompt("={solution}"),
    extract_hint=str.strip,
    prefix_text="",
)
# a minibatch of two of the four tasks seldom has hints that differ in value
HILL = hill(transfer_temperature=100.0).replace(sampler=ASKING, updates=SingleUpdate())
FLIPPED = HILL.replace(advantage=chain(HILL.advantage, negative))
HINTS = [Task(d, f"={d}", h) for h, d in ANSWER.items()]  # the correct hint where d is the answer
HINTED = [Task(d, f"?{h}", d) for h, d in ANSWER.items()]  # the answer given a hint


def success_rate(policy, trainer, tasks) -> float:
    return evaluate(policy, trainer.recipe.env, tasks, num_attempts=64).sampled.value


def informative_fractions(trainer, steps) -> list[float]:
    """The fraction of informative groups of each step."""
    return [trainer.step().metrics["groups/nonzero_std_frac"] for _ in range(steps)]


def good_hints(folder, method, steps=25) -> tuple[float, float, list[float]]:
    """Accuracy of hints before and after training, and informative groups step by step."""
    trainer = learner(
        policy_spec(folder), Unsolved(), method, steps, learning_rate=2e-3, prompts_per_step=4
    )
    before = success_rate(trainer.policy, trainer, HINTS)
    signal = informative_fractions(trainer, steps)
    return before, success_rate(trainer.policy, trainer, HINTS), signal


@pytest.mark.slow
def test_trains_to_hint_and_flipped_sign_does_not(pretrained_model):
    before, after, signal = good_hints(pretrained_model, HILL)
    same, flipped, _ = good_hints(pretrained_model, FLIPPED)
    assert before == same
    assert after > before + 0.2
    assert flipped < before - 0.05
    alone = good_hints(pretrained_model, Method(sampler=GroupSampler(8)), steps=4)[2]
    assert sum(alone) == 0  # without hints nothing is ever learned
    assert sum(signal[:4]) > 2


def both_roles(folder, method, steps=25) -> list[tuple[float, float]]:
    """Accuracy of the reasoner and the hinter, before and after training."""
    trainer = learner(
        two_role_policy_spec(folder),
        Unsolved(),
        method,
        steps,
        learning_rate=2e-3,
        prompts_per_step=4,
    )
    reasoner, hinter = trainer.policy.by_role[""], trainer.policy.by_role["hinter"]
    before = success_rate(reasoner, trainer, HINTED), success_rate(hinter, trainer, HINTS)
    informative_fractions(trainer, steps)
    after = success_rate(reasoner, trainer, HINTED), success_rate(hinter, trainer, HINTS)
    return list(zip(before, after, strict=True))


@pytest.mark.slow
def test_trains_hinter_and_reasoner_and_flipped_sign_does_not(pretrained_model):
    (reasoner, follows), (hinter, hints) = both_roles(pretrained_model, HILL)
    assert follows > reasoner + 0.2
    assert hints > hinter + 0.2
    (same, ignores), (_, misleads) = both_roles(pretrained_model, FLIPPED)
    assert same == reasoner
    assert ignores < reasoner - 0.05
    assert misleads < hinter - 0.05


def test_step_has_2_minibatches():
    assert hill().updates == Updates(minibatches=2)
