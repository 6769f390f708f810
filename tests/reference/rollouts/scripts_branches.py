"""Scripts of games, of trees with fixed splits, of single deviations and of early pruning."""

from collections.abc import Sequence
from math import log

from grupo.envs import MultiplayerEnv, StepResult
from grupo.methods.arrol import arrol
from grupo.methods.branch_grpo import branch_grpo
from grupo.methods.mars_selfplay import mars_selfplay
from grupo.methods.tempflow_grpo import tempflow_grpo
from tests.reference.rollouts.comparison import Script
from tests.reference.rollouts.scripted import Model
from tests.reference.rollouts.scripts_hints import is_right
from tests.reference.rollouts_plain.record import Answers, Question

Q = Question("Q", "42")


def sibling(length: int) -> Answers:
    """Letters that differ by the number of the call, up to a length behind the prompt."""
    return lambda context, n: "abcdefgh"[n] * (length - len(context) + 1)


def greedy_letters(context: str) -> str:
    """The path without noise: six dots in all."""
    return "." * (7 - len(context))


BINS = [(0.0, 8.0), (1.0, 6.0), (2.0, 6.0), (3.0, 6.0), (5.0, 6.0), *[(0.0, 0.0)] * 5]
SCORES = {"a": 0.05, "b": 0.15, "c": 0.25, "d": 0.35, "e": 0.45, "f": 0.15}
ARROL_METRICS = {
    f"value_bins/{name}/{b}": [pair[i]]
    for i, name in enumerate(("correct", "count"))
    for b, pair in enumerate(BINS)
}

STICKS = 4


def sticks(played: Sequence[str]) -> tuple[str, tuple[float, float] | None]:
    """The text that the next player sees, or the rewards: who takes the last stick wins."""
    left = STICKS - sum(int(text[0]) for text in played)
    if left > 0:
        return f"{left} left for {len(played) % 2};", None
    winner = (len(played) - 1) % 2
    return "", (1.0, -1.0) if winner == 0 else (-1.0, 1.0)


class Sticks:
    """The game of `sticks` as an environment."""

    def reset(self, task):
        self.played = []
        return StepResult(sticks([])[0], next_player=0)

    def step(self, text):
        self.played.append(text)
        observation, rewards = sticks(self.played)
        if rewards:
            return StepResult("", done=True, player_rewards=rewards)
        return StepResult(observation, next_player=len(self.played) % 2)


SCRIPTS = {
    "mars_selfplay": [
        Script(
            name,
            mars_selfplay(2),
            Q,
            answers,
            is_right,
            {"moves": sticks, "games": 2},
            calls_in_order=False,
            env=lambda: MultiplayerEnv(Sticks).open(),
        )
        for name, answers in (
            ("each takes one", lambda context, n: "1."),
            ("the first takes three", lambda context, n: "3." if "4 left" in context else "1."),
            ("the games differ", lambda context, n: "31"[n] + "." if "4 " in context else "1."),
        )
    ],
    "branch_grpo": [
        Script(
            f"splits {splits}",
            branch_grpo(splits),
            Q,
            sibling(9),
            lambda text: float(text.count("b")),
            {"splits": splits},
            calls_in_order=False,
        )
        for splits in ((1, 3), (2, 4, 6))
    ],
    "tempflow_grpo": [
        Script(
            f"steps {steps}",
            tempflow_grpo(3, steps),
            Q,
            lambda context, n: "abcdefgh"[n],
            lambda text: float("b" in text),
            {"steps": steps, "greedy": greedy_letters, "count": 3},
            model=Model(greedy=greedy_letters),
        )
        for steps in ((0, 2), (1, 3, 4))
    ],
    "arrol": [
        Script(
            "before the warm-up ends",
            arrol(6, prune_at=3),
            Q,
            lambda context, n: "abcdef"[n] * 5 if context == "Q" else f" {context[1]} 42",
            is_right,
            {
                "score": lambda text: SCORES[text[0]],
                "bins": BINS,
                "size": 6,
                "length": 3,
                "share": 1.0,
            },
            model=Model(head=lambda context: log(SCORES[context[1]] / (1 - SCORES[context[1]]))),
            metrics=ARROL_METRICS,
            progress=0.05,
        ),
        Script(
            "half go on",
            arrol(6, prune_at=3),
            Q,
            lambda context, n: "abcdef"[n] * 5 if context == "Q" else f" {context[1]} 42",
            is_right,
            {"score": lambda text: SCORES[text[0]], "bins": BINS, "size": 6, "length": 3},
            model=Model(head=lambda context: log(SCORES[context[1]] / (1 - SCORES[context[1]]))),
            metrics=ARROL_METRICS,
        ),
    ],
}
