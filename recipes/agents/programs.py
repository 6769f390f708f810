"""A small model learns with GRPO to let Python reckon, in minutes on a processor: docs/agents.md.

python recipes/agents/apprentice.py recipes/agents/programs.py
grupo train recipes/agents/programs.py:RECIPE
"""

from grupo import Adam, CausalLM, Evaluation, Linear, Recipe, Solved, Warmup
from grupo.envs.tools import Python
from grupo.grow.errands import NUMBERS, Errands, Trade, asking, taught
from grupo.methods.grpo import grpo

KINDS = {"even": "x % 2 == 0", "odd": "x % 2 == 1", "threefold": "x % 3 == 0"}
FOLDS = {"sum": "sum({})", "largest": "max({})", "smallest": "min({})", "second": "sorted({})[1]"}
SHAPES = {
    "values": "x",
    "doubles": "2 * x",
    "halves": "x // 2",
    "thirds": "x // 3",
    "ends": "x % 10",
}


def question(kind: str, fold: str, shape: str, first: str, count: str) -> str:
    """What is asked.

    >>> question("even", "sum", "doubles", "17", "6")
    'sum of the doubles of the even ones among 6 numbers from 17 on?'
    """
    return f"{fold} of the {shape} of the {kind} ones among {count} numbers from {first} on?"


def program(kind: str, fold: str, shape: str, first: str, count: str) -> str:
    """What finds the answer.

    >>> program("even", "sum", "doubles", "17", "6")
    'print(sum(2 * x for x in range(17, 17 + 6) if x % 2 == 0))'
    """
    row = f"{SHAPES[shape]} for x in range({first}, {first} + {count})"
    return f"print({FOLDS[fold].format(f'{row} if {KINDS[kind]}' if kind else row)})"


def found(text: str) -> str:
    """What a program of these prints."""
    return eval(text, {"print": str})


def told(text: str, number: int) -> str:
    """How a number is told: it is printed."""
    return str(number)


CHOICES = (tuple(KINDS), tuple(FOLDS), tuple(SHAPES), NUMBERS[10:41:3], NUMBERS[6:10])
TRADE = Trade("python", "code", CHOICES, question, program, found, told)
BEGINNER = taught("programs-beginner", TRADE, Python(), each=30)
RECIPE = Recipe(
    policy=CausalLM(str(BEGINNER.home), limit=56, chat=True, budget=16384),
    env=asking(Python()),
    tasks=BEGINNER.tasks,
    held_out=Errands(TRADE, held_out=True, each=8),
    method=grpo(group=8, kl=0.0),
    steps=50,
    prompts=8,
    lr=Warmup(0.05, Linear(1e-3, 1e-4)),
    optimizer=Adam(),
    evaluation=Evaluation(attempts=4, solved=Solved("correct")),
)
