"""Programs that print an artefact: the score is that of the printed value, and cheats have none."""

import asyncio
import math

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.core.usage import count_external_usage
from grupo.envs import PointsInSquare, PrintedValue, RewardTerm, SingleTurn
from grupo.envs.printed_value import MAX_VALUE_CHARS
from grupo.envs.tools import Sandbox
from tests.helpers.plain_process import sandbox_or_plain_process

TASK = Task("k", "?")
TWO = PrintedValue(PointsInSquare(2))  # at most the diagonal, 1.414
# what a program prints; each looks better than it is, or would be if numbers were trusted
CHEATING_OUTPUTS = {
    "NaN": "[[NaN, 0], [1, 1]]",
    "infinity": "[[0, 0], [Infinity, 1]]",
    "a number that overflows": "[[0, 0], [1e999, 1]]",
    "minus infinity": "[[-1e999, 0], [1, 1]]",
    "an integer beyond the floats": f"[[0, 0], [1{'0' * 400}, 1]]",
    "an integer beyond the digits of a parser": f"[[0, 0], [1{'0' * 9000}, 1]]",
    "outside of the square": "[[0, 0], [2, 2]]",
    "outside by a rounding error": "[[0, 0], [1.0000000000000002, 1]]",
    "a negative coordinate": "[[-5e-324, 0], [1, 1]]",
    "truth values": "[[0, 0], [true, true]]",
    "numbers as texts": '[["0", "0"], ["1", "1"]]',
    "null": "[[0, 0], [null, 1]]",
    "too many points": "[[0, 0], [1, 1], [0.5, 0.5]]",
    "too few points": "[[0, 0]]",
    "no points": "[]",
    "the same point twice": "[[0.5, 0.5], [0.5, 0.5]]",
    "a third coordinate": "[[0, 0, 0], [1, 1, 99]]",
    "the score itself": "99",
    "the score in an object": '{"score": 99}',
    "points in an object": '{"0": [0, 0], "1": [1, 1], "score": 99}',
    "a text of a list": '"[[0, 0], [1, 1]]"',
    "two values in a line": "[[0, 0], [1, 1]] [[0, 0], [9, 9]]",
    "a comment": "[[0, 0], [1, 1]]  # score: 99",
    "a nesting beyond the stack": "[" * 50_000,
    "a line beyond the limit": f"[[0, 0], [1, 1{' ' * MAX_VALUE_CHARS}]]",
    "the value before a failure": "[[0, 0], [1, 1]]\nZeroDivisionError: division by zero",
}
# programs that attack what scores them, and print two equal points
SAME_POINT = "\nprint([[0.5, 0.5], [0.5, 0.5]])"
ATTACKS = {
    "another distance": "import math\nmath.dist = lambda a, b: 99.0",
    "another parser": "import json\njson.loads = lambda *a, **k: [[0, 0], [1, 1]]",
    "another evaluator": (
        "try:\n"
        "    import grupo.envs.problems as p\n"
        "    p.PointsInSquare.__call__ = lambda self, value: {'score': 99.0}\n"
        "except BaseException:\n"
        "    pass"
    ),
    "the frames of the caller": (
        "import sys\n"
        "frame = sys._getframe()\n"
        "while frame:\n"
        "    frame.f_globals.update(score=99.0, value=[[0, 0], [1, 1]])\n"
        "    frame = frame.f_back"
    ),
    "a success by exit code": (
        "import atexit, os\natexit.register(lambda: (sys.stdout.flush(), os._exit(0)))\nimport sys"
    ),
}


@pytest.fixture(scope="module")
def sandbox():
    return sandbox_or_plain_process(Sandbox(time_limit=5.0))


def results(reward, *programs):
    rollouts = [
        Rollout((("?", Response((), (), text=f"```python\n{program}\n```")),))
        for program in programs
    ]
    env = SingleTurn((RewardTerm("points", reward),))
    return asyncio.run(env.score(TASK, rollouts))


def test_the_score_is_the_smallest_distance():
    corners_and_centre = [[0, 0], [0, 1], [1, 0], [1, 1], [0.5, 0.5]]
    values = PointsInSquare(5)(corners_and_centre)
    half_diagonal = math.sqrt(0.5)
    assert values == {
        "score": pytest.approx(half_diagonal),
        "spread": pytest.approx(4 / 5 * half_diagonal),  # the centre has 0
        "edge": 4 / 5,
    }
    nine = [[x / 2, y / 2] for x in range(3) for y in range(3)]
    assert PointsInSquare(9)(nine)["score"] == 0.5


def test_honest_programs_have_the_score_of_their_last_line(sandbox):
    reward = PrintedValue(PointsInSquare(2), sandbox)
    honest, first_line, failed = results(
        reward,
        "print('searching')\nprint([[0, 0], [0.6, 0.8]])",
        "print([[0, 0], [1, 1]])\nprint([[0, 0], [0, 0.25]])",
        "print([[0, 0], [1, 1]])\n1 / 0",
    )
    assert honest.reward == pytest.approx(1.0)  # a triangle of 3, 4 and 5
    assert honest.reward_terms["points/edge"] == 0.5
    assert (first_line.reward, failed.reward) == (0.25, 0.0)


@pytest.mark.parametrize("name", CHEATING_OUTPUTS)
def test_a_value_that_is_not_admissible_has_no_score(name):
    assert TWO.score_output(CHEATING_OUTPUTS[name] + "\n")["score"] == 0.0


def test_programs_that_attack_their_evaluator_have_no_score(sandbox):
    reward = PrintedValue(PointsInSquare(2), sandbox)
    found = results(reward, *(attack + SAME_POINT for attack in ATTACKS.values()))
    assert [(r.reward, r.error) for r in found] == [(0.0, "")] * len(ATTACKS)
    (after,) = results(reward, "print([[0, 0], [0.6, 0.8]])")
    assert after.reward == pytest.approx(1.0)  # the attacks changed nothing in this process


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_is_refused(sandbox, score):
    reward = PrintedValue(lambda value: {"score": score, "x": 1.0}, sandbox)
    (result,) = results(reward, "print(1)")
    assert math.isnan(result.reward)
    assert f"returned {score}" in result.error


def test_a_measure_that_is_not_finite_is_left_out(sandbox):
    reward = PrintedValue(lambda value: {"score": 1.0, "x": math.nan}, sandbox)
    (result,) = results(reward, "print(1)")
    assert (result.reward, dict(result.reward_terms)) == (1.0, {"points": 1.0})


def test_executed_programs_are_counted(sandbox):
    texts = ("```python\nprint(1)\n```", "```text\nno program\n```", "print(2)")
    rollouts = [Rollout((("?", Response((), (), text=text)),)) for text in texts]
    with count_external_usage() as usage:
        asyncio.run(PrintedValue(PointsInSquare(2), sandbox)(TASK, rollouts))
    assert usage == {"executions": 2.0}
