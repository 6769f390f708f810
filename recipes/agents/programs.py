"""A small model learns with GRPO to let Python reckon, in minutes on a processor: docs/agents.md.

python recipes/agents/apprentice.py recipes/agents/programs.py
grupo train recipes/agents/programs.py:RECIPE
"""

from grupo import Adam, CausalLM, Evaluation, Linear, Recipe, Solved, Warmup
from grupo.envs.tools import Python
from grupo.methods.grpo import grpo
from grupo.toy.tool_use import Errands, Trade, asking, taught

KINDS = {"even": "x % 2 == 0", "odd": "x % 2 == 1", "threefold": "x % 3 == 0"}
FOLDS = {"sum": "sum({})", "largest": "max({})", "smallest": "min({})", "second": "sorted({})[1]"}
SHAPES = {
    "values": "x",
    "doubles": "2 * x",
    "triples": "3 * x",
    "raised": "x + 10",
    "halves": "x // 2",
}
COUNTS = {"six": "6", "seven": "7", "eight": "8", "nine": "9"}
NUMBERS = tuple(map(str, range(100)))


def question(kind: str, fold: str, shape: str, count: str, first: str) -> str:
    """What is asked.

    >>> question("even", "sum", "doubles", "six", "4")
    'sum of the doubles of the even ones among six numbers from 4 on?'
    """
    return f"{fold} of the {shape} of the {kind} ones among {count} numbers from {first} on?"


def program(kind: str, fold: str, shape: str, count: str, first: str) -> str:
    """What finds the answer.

    >>> program("even", "sum", "doubles", "six", "4")
    'print(sum(2 * x for x in range(4, 4 + 6) if x % 2 == 0))'
    """
    row = f"{SHAPES[shape]} for x in range({first}, {first} + {COUNTS[count]})"
    return f"print({FOLDS[fold].format(f'{row} if {KINDS[kind]}' if kind else row)})"


def found(text: str) -> str:
    """What a program of these prints."""
    return eval(text, {"print": str})


CHOICES = (tuple(KINDS), tuple(FOLDS), tuple(SHAPES), tuple(COUNTS), NUMBERS[1:10])
TRADE = Trade("python", "code", CHOICES, NUMBERS[10:30], question, program, found, told=str)
BEGINNER = taught("programs-beginner", TRADE, Python(), each=9)
RECIPE = Recipe(
    policy=CausalLM(str(BEGINNER.home), limit=56, chat=True, budget=16384),
    env=asking(Python()),
    tasks=BEGINNER.tasks,
    held_out=Errands(TRADE, held_out=True, each=3),
    method=grpo(group=8, kl=0.0),
    steps=40,
    prompts=8,
    lr=Warmup(0.05, Linear(1e-3, 1e-4)),
    optimizer=Adam(),
    evaluation=Evaluation(attempts=4, solved=Solved("correct")),
)
