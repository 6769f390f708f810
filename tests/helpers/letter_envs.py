"""Worlds of a few letters, and pupils who were taught to be right in them now and then."""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from grupo.algo.advantages import identity
from grupo.algo.losses import NLL
from grupo.core.interfaces import TurnStrategy, single_action
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
KEYS = {"x": "01", "y": "10"}  # what opens each lock
WRONG, STUCK = "22", "33"
CLOSE = ">"


def key(task: Task) -> Sequence[str]:
    return [task.reference_answer]


class Shown:
    """Prompts and answers to be imitated."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self.tasks = [Task(str(i), *pair) for i, pair in enumerate(pairs)]

    def load(self) -> Sequence[Task]:
        return self.tasks


def learner(folder, tasks, method, steps=60, *, limit=3, env=None, **more) -> Learner:
    exact = SingleTurn((RewardTerm("right", ExactMatch()),))
    given = {"max_steps": steps, "learning_rate": 2e-3, "prompts_per_step": 4, **more}
    policy = CausalLM(folder, max_new_tokens=limit)
    return Learner(
        Recipe(policy, env or exact, tasks, eval_tasks=0, method=method, **given)  # type: ignore
    )


def taught(name: str, pairs: Sequence[tuple[str, str]], steps: int, limit: int) -> str:
    """The folder of a pupil who was shown these so often."""
    home = Path(HOME.name) / name
    method = Method(sampler=DemonstrationSampler(key), advantage=identity, loss=NLL())
    start = str(tiny_lm.save_model(home / "start"))
    made = learner(start, Shown(pairs), method, steps, limit=limit, learning_rate=1e-2, prompts_per_step=16)
    for _ in range(steps):
        made.step()
    made.policy.export(home / "model")
    return str(home / "model")


def share(
    made: Learner, tasks: Sequence[Task], turn: TurnStrategy = single_action, attempts=64
) -> float:
    """How often these are solved, sampled."""
    return evaluate(
        made.policy, made.recipe.env, tasks, attempts=attempts, turn_strategy=turn
    ).sampled.value


class Locks:
    """Locks that open to their key; hints that say a part of it, or all."""

    def load(self) -> Sequence[Task]:
        return [
            Task(f"{lock}{i}", f"{lock}?", k, columns={"hint": k, "hints": (k[:1], k)})
            for lock, k in KEYS.items()
            for i in range(2)
        ]


def critique(task: Task, first: Rollout) -> str:
    """What the key is."""
    return str(task.reference_answer)


def criticised(lock: str, said: str) -> str:
    """What is read before a second attempt."""
    return f"{lock}?\n\nYour answer: {said}\n\n{KEYS[lock]}\n\n!"


@cache
def lockpick() -> str:
    """Never opens a lock alone; behind a hint or a critique that says the key, every other time."""
    near = [(k[0] + "3", "3" + k[1]) for k in KEYS.values()]  # half of a key
    plain = [(*[WRONG] * 14, *some) for some in near]
    pairs = [(f"{lock}?", said) for lock, some in zip(KEYS, plain, strict=True) for said in some]
    for lock, k in KEYS.items():
        pairs += [(f"{lock}?{k}", said) for said in (k, WRONG) for _ in range(2)]
        pairs += [(f"{lock}?{k[:1]}", WRONG)] * 2
        pairs += [(criticised(lock, WRONG), said) for said in (k, WRONG) for _ in range(2)]
    return taught("lockpick", pairs, 150, limit=3)


@cache
def rare() -> str:
    """Opens a lock alone about once in a hundred times."""
    pairs = [(f"{lock}?", said) for lock in KEYS for said in (*[WRONG] * 97, STUCK, STUCK)]
    return taught("rare", [*pairs, *((f"{lock}?", k) for lock, k in KEYS.items())], 150, limit=3)


def counting(random: Random, start: int = 0) -> str:
    """Digits from `start` to 6, now and then a dot behind one."""
    return "".join(str(i) + "." * (random.random() < 0.5) for i in range(start, 7))


def counted(task: Task, rollout: Rollout) -> float:
    """Was it counted from 0 to 6, dots left out?"""
    return float(rollout.text.replace(".", "") == "0123456")


@cache
def counter() -> str:
    """Counts, and goes on from a digit; from a dot it goes on anywhere."""
    random = Random(0)
    pairs = [("=", counting(random)) for _ in range(40)]
    pairs += [(f"={i}", counting(random, i + 1)) for i in range(6) for _ in range(10)]
    pairs += [("=.", counting(random, random.randrange(7))) for _ in range(30)]
    return taught("counter", pairs, 150, limit=16)


class Counting:
    """One task by several names."""

    def load(self) -> Sequence[Task]:
        return [Task(str(i), "=", "") for i in range(4)]


def chain(digit: str, steps: int) -> str:
    """A thought of so many steps; the third says the answer, which comes after the close."""
    answer = digit if steps >= 3 else "-"
    return f"ab{digit}defghij"[:steps] + CLOSE + answer


@cache
def thinker(unsure: int = 0) -> str:
    """Mostly thinks ten steps; answers what the third one said, and does not know before that.

    Closed early, it is `unsure` times as often silent as not.
    """

    def pairs() -> Iterator[tuple[str, str]]:
        for digit in "012":
            for steps in (*[10] * 14, *range(3, 10)):
                yield f"{digit}=", chain(digit, steps)
            for steps in range(1, 11):  # asked so, it does not learn to close there
                thought, answer = chain(digit, steps).split(CLOSE)
                yield f"{digit}={thought}{CLOSE}", answer
                for _ in range(unsure if steps < 10 else 0):
                    yield f"{digit}={thought}{CLOSE}", "-"

    return taught(f"thinker {unsure}", list(pairs()), 150, limit=16)


class Chains:
    """What the thought says in its third step."""

    def load(self) -> Sequence[Task]:
        return [Task(f"{d}{i}", f"{d}=", d) for d in "012" for i in range(2)]


ANSWERED = SingleTurn((RewardTerm("right", ExactMatch(AfterMarker(CLOSE))),))


def thoughts(made: Learner, attempts: int = 32) -> float:
    """How many steps are thought, on average."""
    groups = run_rollouts(made.policy.actor(3), made.recipe.env, made.tasks, attempts)
    lengths = [r.text.partition(CLOSE)[0] for group in groups for r in group.rollouts]
    return sum(map(len, lengths)) / len(lengths)
