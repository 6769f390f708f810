"""GRPO teaches a toy model to compute with Python programs, in minutes: docs/agents.md.

python recipes/agents/tool_base_model.py recipes/agents/python_tool.py
grupo train recipes/agents/python_tool.py:RECIPE
"""

from grupo import Adam, CausalLM, Evaluation, Linear, Recipe, SuccessCriterion, Warmup
from grupo.envs.tools import Python
from grupo.methods.grpo import grpo
from grupo.toy.tool_use import ToolTaskFamily, ToolTasks, tool_env, tool_use_model

CONDITIONS = {"even": "x % 2 == 0", "odd": "x % 2 == 1", "threefold": "x % 3 == 0"}
AGGREGATES = {
    "sum": "sum({})",
    "largest": "max({})",
    "smallest": "min({})",
    "second": "sorted({})[1]",
}
EXPRESSIONS = {
    "values": "x",
    "doubles": "2 * x",
    "triples": "3 * x",
    "raised": "x + 10",
    "halves": "x // 2",
}
COUNTS = {"six": "6", "seven": "7", "eight": "8", "nine": "9"}
NUMBERS = tuple(map(str, range(100)))


def question(condition: str, aggregate: str, expression: str, count: str, first: str) -> str:
    """The question of a task.

    >>> question("even", "sum", "doubles", "six", "4")
    'sum of the doubles of the even ones among six numbers from 4 on?'
    """
    return (
        f"{aggregate} of the {expression} of the {condition} ones"
        f" among {count} numbers from {first} on?"
    )


def program(condition: str, aggregate: str, expression: str, count: str, first: str) -> str:
    """The program that answers the question; without the condition if it is empty.

    >>> program("even", "sum", "doubles", "six", "4")
    'print(sum(2 * x for x in range(4, 4 + 6) if x % 2 == 0))'
    """
    values = f"{EXPRESSIONS[expression]} for x in range({first}, {first} + {COUNTS[count]})"
    if condition:
        values += f" if {CONDITIONS[condition]}"
    return f"print({AGGREGATES[aggregate].format(values)})"


def run_program(text: str) -> str:
    """The output of such a program, without a sandbox: it comes from `program`."""
    return eval(text, {"print": str})


CHOICES = (tuple(CONDITIONS), tuple(AGGREGATES), tuple(EXPRESSIONS), tuple(COUNTS), NUMBERS[1:10])
TASK_FAMILY = ToolTaskFamily(
    "python", "code", CHOICES, NUMBERS[10:30], question, program, run_program, format_result=str
)
BASE_MODEL = tool_use_model(
    "python-tool-base-model", TASK_FAMILY, Python(), tasks_per_combination=9
)
RECIPE = Recipe(
    policy=CausalLM(
        str(BASE_MODEL.model_dir),
        max_new_tokens=56,
        apply_chat_template=True,
        tokens_per_microbatch=16384,
    ),
    env=tool_env(Python()),
    tasks=BASE_MODEL.tasks,
    eval_tasks=ToolTasks(TASK_FAMILY, held_out=True, tasks_per_combination=3),
    method=grpo(group_size=8, kl_coef=0.0),
    max_steps=40,
    prompts_per_step=8,
    learning_rate=Warmup(0.05, Linear(1e-3, 1e-4)),
    optimizer=Adam(),
    evaluation=Evaluation(attempts=4, success=SuccessCriterion("correct")),
)
