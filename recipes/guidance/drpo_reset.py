"""DRPO: rollouts that start inside a demonstration, on a lock of six digits.

Named before the first run of all seeds: after training, the policy opens the lock from the first
digit more often than GRPO, and GRPO opens it in less than 1 % of the attempts.

python recipes/guidance/drpo_reset.py FOLDER [FIRST_SEED END]
"""

import random
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from grupo.algo.advantages import identity
from grupo.algo.losses import NLL
from grupo.claims.paired_table import paired_table
from grupo.claims.stored_runs import stored_runs
from grupo.claims.tiny_lm import TINY, mean_terms, trained
from grupo.core.component import component
from grupo.core.importing import load_module_file
from grupo.core.schedules import Cosine, Warmup
from grupo.core.types import Observation, RewardResult, Rollout, Task
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rollouts.samplers import GroupSampler, Reset
from grupo.tasks import InMemoryTasks
from grupo.toy.multi_turn_lm import MultiTurnDemonstrations
from grupo.toy.tokenizers import word_tokenizer
from grupo.training.learner import Learner

SEEDS = 8
VALUES = 5  # digits from 0 to 4
COMBINATION = ("3", "0", "4", "2", "1", "3")
STEPS = 200
DEMONSTRATION_STEPS = 80


def question(number: int) -> str:
    """The observation before a digit, which does not tell whether the digits so far are right."""
    return f"lock , digit {number + 1} : "


@component
class CombinationLock:
    """A lock that takes one digit a turn, with reward 1 at the end if all of them are right."""

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        """The next question; a digit and the end token make one turn."""
        number = sum(bool(observation) for observation, _ in rollout.turns)
        return question(number) if number < len(COMBINATION) else None

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        """1 for the combination, 0 for everything else."""
        return [RewardResult(float(rollout.text == "".join(COMBINATION))) for rollout in rollouts]


ENV = CombinationLock()
TASKS = [Task("lock", question(0), columns={"solution": COMBINATION})]


def any_digit(task: Task, observations: Sequence[Observation], rng: random.Random) -> str:
    """The demonstration of a beginner, who knows the form of an answer alone."""
    return str(rng.randrange(VALUES))


def recipe(model: Path, method: Method, seed: int, steps: int, learning_rate: object) -> Recipe:
    """Training on the lock; an answer is a digit and the end token."""
    return Recipe(
        policy=CausalLM(str(model), max_new_tokens=2, tokens_per_microbatch=8192),
        env=ENV,
        tasks=InMemoryTasks(TASKS),
        eval_tasks=0,
        method=method,
        max_steps=steps,
        prompts_per_step=16,
        learning_rate=learning_rate,
        seed=seed,
    )


def beginner(folder: Path) -> Path:
    """The folder of the model that answers every question with any digit; trained once."""
    if not (folder / "model").exists():
        texts = [question(number) for number in range(len(COMBINATION))]
        TINY.save_untrained(folder / "start", word_tokenizer([*texts, "0 1 2 3 4"]))
        demonstrations = MultiTurnDemonstrations(any_digit)
        method = Method(sampler=demonstrations, advantage=identity, loss=NLL())
        rate = Warmup(0.05, Cosine(5e-3, 5e-4))
        learner = trained(recipe(folder / "start", method, 0, DEMONSTRATION_STEPS, rate))
        learner.policy.export(folder / "model")
    return folder / "model"


METHODS = {
    "GRPO": grpo(kl_coef=0.05).replace(sampler=GroupSampler(8)),
    "DRPO, half": grpo(kl_coef=0.05).replace(sampler=Reset(8, chance=0.5)),
    "DRPO": grpo(kl_coef=0.05).replace(sampler=Reset(8)),
}


def measured(learner: Learner, seed: int) -> dict[str, float]:
    """Share of attempts from the first digit that open the lock, and tokens generated."""
    opened = mean_terms(learner.policy, ENV, TASKS, attempts=256, seed=seed)["reward"]
    return {"opened": opened, "tokens": float(learner.state.generated_tokens)}


def main(folder: Path, seeds: Sequence[int]) -> None:
    """Train what is missing in the folder and print the table."""
    model = beginner(folder)

    def run(method: Method, seed: int) -> dict[str, float]:
        return measured(trained(recipe(model, method, seed, STEPS, 1e-3)), seed)

    untrained = recipe(model, METHODS["GRPO"], 0, 1, 0.0)
    arms = {
        "beginner": lambda seed: measured(Learner(untrained), seed),
        **{name: partial(run, method) for name, method in METHODS.items()},
    }
    runs = stored_runs(folder / "runs", arms, seeds)
    if len(seeds) > 1:
        print(paired_table(runs, ["opened", "tokens"], "GRPO"))


if __name__ == "__main__":
    bounds = [int(text) for text in sys.argv[2:4]] or [0, SEEDS]
    load_module_file(Path(__file__)).main(Path(sys.argv[1]), range(*bounds))
