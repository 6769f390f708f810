"""Six domains in small, as in GURU: tasks, a scorer for each, and demonstrations.

All domains share two ways to answer. A careful answer is right; a hasty one is often the answer of
another task. Each has the format of its domain.
"""

import json
import random
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

from grupo.core.types import Rollout, Task
from grupo.envs import CodeTests, RewardTerm, SingleTurn
from grupo.envs.tools import Sandbox
from grupo.rewards import (
    AnswerList,
    ByColumn,
    CellShare,
    InsideTag,
    MathEqual,
    MultipleChoice,
    Route,
    SameData,
    all_met,
    last_boxed,
    last_json_block,
)
from grupo.tasks import ReasoningGym

DOMAINS = ("math", "code", "science", "logic", "simulation", "tabular")
TASKS = 160  # of each domain; the second half is held out from RL
CAREFUL, HASTY = "ok\n", "hm\n"
CAREFUL_SHARE = 0.5
RIGHT_BY_HASTE = 0.2
TIME_LIMIT = 10.0  # seconds, the paper's code for every scorer
PEOPLE = ("ann", "bob", "cid")
ROWS, COLOURS = (*PEOPLE, "dan"), ("red", "blue", "green", "pink")
KINDS = {
    "metal": ("iron", "gold", "zinc", "lead", "copper", "silver"),
    "gas": ("neon", "argon", "helium", "oxygen", "radon", "xenon"),
    "animal": ("tiger", "horse", "eagle", "shark", "otter", "camel"),
    "plant": ("fern", "maple", "clover", "barley", "cactus", "ivy"),
}
SIGNS = {"plus": "+", "minus": "-", "times": "*"}
FORMATS = (
    "```python\ndef f(x): return ",
    "\n```",
    '```json\n{"output": ',
    "}\n```",
    '<answer>{"rows": [["ann", "',
    '"], ["bob", "',
    '"], ["cid", "',
    '"], ["dan", "',
    '"]]}</answer>',
    r"\boxed{",
    "State the final answer to the following arithmetic problem: ",
)
TAGS = (CAREFUL, HASTY, *FORMATS)


def _task(domain: str, prompt: str, answer: object, shown: str, **columns: object) -> Task:
    """A task whose right answer, in the format of its domain, is the column `shown`."""
    prompt = f"{prompt}\n"
    return Task(prompt, prompt, answer, domain, {"domain": domain, "shown": shown, **columns})


def math_task(index: int) -> Task:
    """A sum of two digits of reasoning-gym."""
    entry = _sums()[index]
    answer = str(entry.reference_answer)
    return _task("math", str(entry.prompt), answer, rf"\boxed{{{answer}}}")


@cache
def _sums() -> Sequence[Task]:
    one_digit = (("min_terms", 2), ("max_terms", 2), ("min_digits", 1), ("max_digits", 1))
    return ReasoningGym("chain_sum", size=5000, settings=one_digit).load()


def code_task(index: int) -> Task:
    """A function of one number, with hidden tests."""
    rng = random.Random(f"code {index}")
    (first, a), (second, b) = [(rng.choice(list(SIGNS)), rng.randint(1, 9)) for _ in range(2)]
    body = f"(x {SIGNS[first]} {a}) {SIGNS[second]} {b}"
    tests = [f"assert f({x}) == {run_program(f'x = {x}; x = {body}')}" for x in (0, 2, 7)]
    shown = f"```python\ndef f(x): return {body}\n```"
    return _task("code", f"x {first} {a} then {second} {b}", None, shown, tests=tests)


def science_task(index: int) -> Task:
    """A question about kinds of things, with two options."""
    rng = random.Random(f"science {index}")
    right, wrong = rng.sample(list(KINDS), 2)
    options = [rng.choice(KINDS[right]), rng.choice(KINDS[wrong])]
    label = rng.choice("AB")
    ordered = options if label == "A" else options[::-1]
    prompt = f"which is a {right}: A {ordered[0]} B {ordered[1]}"
    return _task("science", prompt, label, rf"\boxed{{{label}}}", options=ordered)


def logic_task(index: int) -> Task:
    """A zebra puzzle of four people and their colours, with three clues."""
    rng = random.Random(f"logic {index}")
    colours = dict(zip(ROWS, rng.sample(COLOURS, 4), strict=True))
    first, second, third, fourth = rng.sample(ROWS, 4)
    clues = [f"{person} is {colours[person]}" for person in (first, second)]
    clues.append(f"{third} is not {colours[fourth]}")
    rows = [[person, colours[person]] for person in ROWS]
    shown = f"<answer>{json.dumps({'rows': rows})}</answer>"
    return _task("logic", " , ".join(clues), {"rows": rows}, shown)


def simulation_task(index: int) -> Task:
    """A program whose output is to be predicted."""
    rng = random.Random(f"simulation {index}")
    while True:
        steps = [f"x {rng.choice('+-')}= {rng.randint(1, 3)}" for _ in range(2)]
        program = f"x = {rng.randint(0, 9)}; {'; '.join(steps)}"
        output = run_program(program)
        if 0 <= output <= 9:
            break
    answer = {"output": output}
    shown = f"```json\n{json.dumps(answer)}\n```"
    return _task("simulation", f"{program}; print(x)", answer, shown, program=program)


def run_program(program: str) -> int:
    """The value of x after a program of this module; a test compares it with the sandbox's."""
    names: dict[str, int] = {}
    exec(program, {"__builtins__": {}}, names)  # no text of a policy comes here
    return names["x"]


def tabular_task(index: int) -> Task:
    """A question about a table of three rows, with one or two answers."""
    rng = random.Random(f"tabular {index}")
    values = dict(zip(PEOPLE, rng.sample(range(1, 10), 3), strict=True))
    limit = rng.choice(sorted(values.values())[:2])
    answer = "|".join(person for person in PEOPLE if values[person] > limit)
    cells = " , ".join(f"{person} {value}" for person, value in values.items())
    return _task("tabular", f"{cells} ; above {limit}", answer, rf"\boxed{{{answer}}}")


MAKERS: dict[str, Callable[[int], Task]] = {
    "math": math_task,
    "code": code_task,
    "science": science_task,
    "logic": logic_task,
    "simulation": simulation_task,
    "tabular": tabular_task,
}


@cache
def domain_tasks(domain: str) -> tuple[Task, ...]:
    """Tasks of a domain with different prompts; fewer than `TASKS` if it has no more."""
    found = {task.key: task for task in map(MAKERS[domain], range(10 * TASKS))}
    return tuple(found.values())[:TASKS]


def training_tasks(domain: str) -> tuple[Task, ...]:
    """The tasks that RL trains on."""
    tasks = domain_tasks(domain)
    return tasks[: len(tasks) // 2]


def held_out_tasks(domain: str) -> tuple[Task, ...]:
    """The tasks that are held out from RL."""
    tasks = domain_tasks(domain)
    return tasks[len(tasks) // 2 :]


def pretraining_tasks(shares: dict[str, float], size: int) -> list[Task]:
    """Tasks of all domains by their shares; each has a key, and so a demonstration, of its own.

    Args:
        shares: Share of each domain, relative to the others.
        size: Number of tasks.
    """
    rng = random.Random(0)
    domains = rng.choices(list(shares), list(shares.values()), k=size)
    chosen = (rng.choice(domain_tasks(domain)) for domain in domains)
    return [
        Task(f"{i} {task.key}", task.prompt, task.reference_answer, task.source, task.columns)
        for i, task in enumerate(chosen)
    ]


def demonstrate(task: Task) -> list[str]:
    """One answer, careful or hasty."""
    rng = random.Random(task.key)
    right = str(task.columns["shown"])
    if rng.random() < CAREFUL_SHARE:
        return [CAREFUL + right]
    other = str(rng.choice(domain_tasks(task.source)).columns["shown"])
    return [HASTY + (right if rng.random() < RIGHT_BY_HASTE else other)]


CODE_TESTS = CodeTests(Sandbox(), combine=all_met)


def passes_all_tests(task: Task, rollout: Rollout) -> float:
    """1 if the program passes all tests in the sandbox, else 0; each text runs once per task."""
    return _code_score(task.key, json.dumps(task.columns["tests"]), rollout.text)


@lru_cache(maxsize=100_000)
def _code_score(key: str, tests: str, text: str) -> float:
    return CODE_TESTS.score_text(Task(key, "", columns={"tests": tests}), text)


REWARD = ByColumn(
    "domain",
    (
        Route("math", MathEqual(last_boxed), TIME_LIMIT),
        Route("code", passes_all_tests, TIME_LIMIT),
        Route("science", MultipleChoice(last_boxed), TIME_LIMIT),
        Route("logic", CellShare(InsideTag("answer")), TIME_LIMIT),
        Route("simulation", SameData(last_json_block), TIME_LIMIT),
        Route("tabular", AnswerList(extract=last_boxed), TIME_LIMIT),
    ),
)
ENV = SingleTurn((RewardTerm("correct", REWARD),))
