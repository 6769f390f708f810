"""A trial: a method trained for some steps, and what became of the truth."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from grupo.algo.advantages import chain
from grupo.algo.minibatches import Passes
from grupo.core.batch import Batch
from grupo.core.component import is_piece, parts
from grupo.core.rng import derive
from grupo.core.signal_names import is_mark, split, tempered
from grupo.method import Method
from grupo.models.aux_models import Other
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import Solved, evaluate
from grupo.rollouts.samplers import Independent
from grupo.testing import property_helpers
from grupo.testing.smoke.echo_env import LIMIT, Digits, Echo, hidden, hinted
from grupo.testing.smoke.tiny_model import BEGINNER, TEACHER, model
from grupo.training.learner import Learner

STEPS, PROMPTS, GROUP, LR = 40, 8, 8, 3e-3
PLAN = Passes(minibatches=2)  # for all: ratios leave 1, and nobody learns more often
ATTEMPTS = 16  # at each task, before and after
TEACHERS = ("teacher", "prm")
VIEWS = {"masked": hidden, "old": None}  # "old" has the policy's own prompt; all others are hinted


@dataclass(frozen=True)
class Trial:
    """The share of sampled rollouts that say the truth, before training and after it."""

    before: float
    after: float

    @property
    def gain(self) -> float:
        """By how much it rose."""
        return self.after - self.before


def tried(method: Method, *, seed: int = 0, turned: bool = False, steps: int = STEPS) -> Trial:
    """Train the method on Echo; `turned`: with its signal turned round.

    The sign of its advantage is flipped; where the loss does not read the advantage, or learns from
    somebody who knows the answer, the world and all who know it hold another digit for right.
    """
    shift = int(turned and not _follows_advantage(method))
    if turned and not shift:
        method = method.but(credit=chain(method.credit, negative))
    learner = Learner(recipe(method, seed=seed, shift=shift, steps=steps))
    before = _truth(learner)
    for _ in range(steps):
        learner.step()
    return Trial(before, _truth(learner))


def recipe(method: Method, *, seed: int = 0, shift: int = 0, steps: int = STEPS) -> Recipe:
    """A run of the method on Echo, with everybody and everything that it reads.

    Its groups are of one size and its updates as many as everybody's, whatever its own.
    """
    names = tuple(sorted(method.reads_parts))
    marks = tuple(sorted(n.removeprefix("mark/") for n in method.needs if is_mark(n)))
    whose = {split(need)[1] for need in method.needs} - {"", "ref", "sampler"}
    return Recipe(
        policy=CausalLM(model(BEGINNER), limit=LIMIT),
        env=Echo(shift, names, marks),
        tasks=Digits(shift),
        held_out=0,
        method=method.but(sample=resized(method.sample), plan=PLAN),
        others=tuple(_other(who, shift) for who in sorted(whose) if not tempered(who)),
        steps=steps,
        prompts=PROMPTS,
        lr=LR,
        helper_lr=3e-2,
        seed=seed,
    )


def negative(x: Tensor, batch: Batch) -> Tensor:
    """The credit so far with its sign flipped."""
    return -x


def resized(sample: Any) -> Any:
    """The same sampler with groups of one size, however deep it says theirs."""
    if isinstance(sample, Independent):
        return replace(sample, n=GROUP)
    if not is_piece(sample):
        return sample
    inside = {name: resized(x) for name, x in parts(sample).items() if is_piece(x)}
    return replace(sample, **inside)


def _truth(learner: Learner) -> float:
    score = evaluate(
        learner.policy,
        learner.recipe.env,
        learner.tasks,
        attempts=ATTEMPTS,
        solved=Solved("truth"),
        key=derive(learner.recipe.seed, "truth"),
    )
    return score.sampled.value


def _other(who: str, shift: int) -> Other:
    if who in TEACHERS:
        return Other(who, CausalLM(model(TEACHER, shift), limit=LIMIT))
    return Other(who, "policy", VIEWS.get(who, hinted))


def _follows_advantage(method: Method) -> bool:
    """Does flipping the advantage flip the gradient, and does nobody else know the answer?"""
    if _knowing(method.needs) or "sampled" in method.needs:
        return False
    batch = property_helpers.batch_for(method)
    flipped = method.but(credit=chain(method.credit, negative))
    one, other = (property_helpers.learned(m, batch)[1] for m in (method, flipped))
    return bool(torch.nn.functional.cosine_similarity(one.flatten(), other.flatten(), 0) < 0)


def _knowing(needs: Sequence[str] | frozenset[str]) -> bool:
    return any(split(need)[1] not in ("", "ref", "sampler") for need in needs)
