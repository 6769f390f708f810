"""Environments of a few letters, and models trained to solve them now and then."""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from grupo.algo.advantages import identity
from grupo.algo.losses import NLL
from grupo.core.interfaces import TurnStrategy, single_response
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rewards import AfterMarker, ExactMatch
from grupo.rollouts.evaluate import evaluate, run_rollouts
from grupo.rollouts.samplers import DemonstrationSampler
from grupo.training.learner import Learner
from tests.helpers import tiny_lm

HOME = TemporaryDirectory(prefix="grupo-toys-")
KEYS = {"x": "01", "y": "10"}  # the solution of each lock
WRONG, STUCK = "22", "33"
CLOSE = ">"


def key(task: Task) -> Sequence[str]:
    return [task.reference_answer]


class Demonstrations:
    """Tasks of prompts and answers to imitate."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self.tasks = [Task(str(i), *pair) for i, pair in enumerate(pairs)]

    def load(self) -> Sequence[Task]:
        return self.tasks


def learner(folder, tasks, method, steps=60, *, limit=3, env=None, **more) -> Learner:
    """A learner for these tasks, by default with an exact match as reward."""
    exact = SingleTurn((RewardTerm("right", ExactMatch()),))
    options = {"max_steps": steps, "learning_rate": 2e-3, "prompts_per_step": 4, **more}
    policy = CausalLM(folder, max_new_tokens=limit)
    return Learner(
        Recipe(policy, env or exact, tasks, eval_tasks=0, method=method, **options)  # type: ignore
    )


def train_model(name: str, pairs: Sequence[tuple[str, str]], steps: int, limit: int) -> str:
    """The folder of a model that was trained on these pairs for so many steps."""
    home = Path(HOME.name) / name
    method = Method(sampler=DemonstrationSampler(key), advantage=identity, loss=NLL())
    start = str(tiny_lm.save_model(home / "start"))
    trainer = learner(
        start,
        Demonstrations(pairs),
        method,
        steps,
        limit=limit,
        learning_rate=1e-2,
        prompts_per_step=16,
    )
    for _ in range(steps):
        trainer.step()
    trainer.policy.export(home / "model")
    return str(home / "model")


def accuracy(
    trainer: Learner, tasks: Sequence[Task], turn: TurnStrategy = single_response, attempts=64
) -> float:
    """The sampled accuracy on these tasks."""
    return evaluate(
        trainer.policy, trainer.recipe.env, tasks, num_attempts=attempts, turn_strategy=turn
    ).sampled.value


class Locks:
    """Locks whose solution is their key; the hints give a part of the key, or all of it."""

    def load(self) -> Sequence[Task]:
        return [
            Task(f"{lock}{i}", f"{lock}?", k, columns={"hint": k, "hints": (k[:1], k)})
            for lock, k in KEYS.items()
            for i in range(2)
        ]


def critique(task: Task, first: Rollout) -> str:
    """The key."""
    return str(task.reference_answer)


def criticised(lock: str, answer: str) -> str:
    """The prompt of a second attempt."""
    return f"{lock}?\n\nYour answer: {answer}\n\n{KEYS[lock]}\n\n!"


@cache
def lockpick() -> str:
    """A model that never solves a lock alone, and every other time given the key in the prompt."""
    near = [(k[0] + "3", "3" + k[1]) for k in KEYS.values()]  # half of a key
    plain = [(*[WRONG] * 14, *answers) for answers in near]
    pairs = [(f"{lock}?", x) for lock, answers in zip(KEYS, plain, strict=True) for x in answers]
    for lock, k in KEYS.items():
        pairs += [(f"{lock}?{k}", x) for x in (k, WRONG) for _ in range(2)]
        pairs += [(f"{lock}?{k[:1]}", WRONG)] * 2
        pairs += [(criticised(lock, WRONG), x) for x in (k, WRONG) for _ in range(2)]
    return train_model("lockpick", pairs, 150, limit=3)


@cache
def rare() -> str:
    """A model that solves a lock about once in a hundred times."""
    pairs = [(f"{lock}?", x) for lock in KEYS for x in (*[WRONG] * 97, STUCK, STUCK)]
    return train_model(
        "rare", [*pairs, *((f"{lock}?", k) for lock, k in KEYS.items())], 150, limit=3
    )


def counting(random: Random, start: int = 0) -> str:
    """Digits from `start` to 6, half of them followed by a dot."""
    return "".join(str(i) + "." * (random.random() < 0.5) for i in range(start, 7))


def counted(task: Task, rollout: Rollout) -> float:
    """1 if the digits count from 0 to 6, without the dots."""
    return float(rollout.text.replace(".", "") == "0123456")


@cache
def counter() -> str:
    """A model that counts and continues from a digit; after a dot it continues at random."""
    random = Random(0)
    pairs = [("=", counting(random)) for _ in range(40)]
    pairs += [(f"={i}", counting(random, i + 1)) for i in range(6) for _ in range(10)]
    pairs += [("=.", counting(random, random.randrange(7))) for _ in range(30)]
    return train_model("counter", pairs, 150, limit=16)


class Counting:
    """The same task under several names."""

    def load(self) -> Sequence[Task]:
        return [Task(str(i), "=", "") for i in range(4)]


def chain(digit: str, steps: int) -> str:
    """Thinking of so many steps and the answer; the third step is the answer."""
    answer = digit if steps >= 3 else "-"
    return f"ab{digit}defghij"[:steps] + CLOSE + answer


@cache
def thinker(unsure: int = 0) -> str:
    """A model that mostly thinks ten steps and answers what the third step is.

    When closed early it gives no answer `unsure` times as often as one.
    """

    def pairs() -> Iterator[tuple[str, str]]:
        for digit in "012":
            for steps in (*[10] * 14, *range(3, 10)):
                yield f"{digit}=", chain(digit, steps)
            for steps in range(1, 11):  # prompted so, it does not learn to close there
                thought, answer = chain(digit, steps).split(CLOSE)
                yield f"{digit}={thought}{CLOSE}", answer
                for _ in range(unsure if steps < 10 else 0):
                    yield f"{digit}={thought}{CLOSE}", "-"

    return train_model(f"thinker {unsure}", list(pairs()), 150, limit=16)


class Chains:
    """Tasks whose answer is the third step of the thinking."""

    def load(self) -> Sequence[Task]:
        return [Task(f"{d}{i}", f"{d}=", d) for d in "012" for i in range(2)]


ANSWERED = SingleTurn((RewardTerm("right", ExactMatch(AfterMarker(CLOSE))),))


def thoughts(trainer: Learner, attempts: int = 32) -> float:
    """The mean number of thinking steps."""
    groups = run_rollouts(trainer.policy.actor(3), trainer.recipe.env, trainer.tasks, attempts)
    lengths = [r.text.partition(CLOSE)[0] for group in groups for r in group.rollouts]
    return sum(map(len, lengths)) / len(lengths)
