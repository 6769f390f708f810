"""A small policy writes hints for a model behind an API, which is never trained.

The policy reads a sum and writes a hint. The closed model answers the same question with the hint
in its prompt, and its answer is the policy's reward. The address is that of
`grupo serve MODEL --openai`; any OpenAI-compatible one takes its place.

grupo train recipes/real/hinted_sums.py:RECIPE --model PATH
python recipes/real/hinted_sums.py               # what right and wrong hints change
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from grupo import Adam, CausalLM, Evaluation, Recipe
from grupo.compare.table_formats import markdown
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.methods.grpo import grpo
from grupo.rewards import ChatEndpoint, Downstream, NumberWithin
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.tasks import parse_task_source
from grupo.util.importing import load_module_file

ANSWERS = load_module_file(Path(__file__).with_name("answers.py"))
HINT_SCORES = load_module_file(Path(__file__).with_name("hint_scores.py"))
RIGHT_NUMBER = NumberWithin(extract=ANSWERS.last_number)
CLOSED = ChatEndpoint("model", "http://127.0.0.1:8000/v1", temperature=0.0, max_tokens=12)
PROMPT = "{question}\nHint: {completion}"
QUESTIONS = "rows/asked.jsonl"
HELD_OUT = 48  # questions
RECIPE = Recipe(
    policy=CausalLM("model", max_new_tokens=12, apply_chat_template=True),
    env=SingleTurn(
        (
            RewardTerm("answer", Downstream(CLOSED, PROMPT, RIGHT_NUMBER)),
            RewardTerm("hint", RIGHT_NUMBER, weight=0.0),
        )
    ),
    tasks=parse_task_source(QUESTIONS),
    eval_tasks=HELD_OUT,
    method=grpo(group_size=8, kl_coef=0.0),
    max_steps=12,
    prompts_per_step=8,
    learning_rate=1e-5,
    optimizer=Adam(),
    evaluation=Evaluation(attempts=1, success=SuccessCriterion("answer")),
    save_every=12,  # a checkpoint has 1.6 GB
)


def share_right(tasks: Sequence[Task], prompt: str, hint: Callable[[Task], str]) -> float:
    """The share of questions that the closed model answers rightly with hints in its prompt."""
    return HINT_SCORES.mean_score(Downstream(CLOSED, prompt, RIGHT_NUMBER), tasks, hint)


def main() -> None:
    """Print the closed model's accuracy without a hint, with a right one and with a wrong one."""
    tasks, rng = parse_task_source(QUESTIONS).load()[:HELD_OUT], Random(0)
    arms = {
        "none": share_right(tasks, "{question}{completion}", lambda task: ""),
        "the right sum": share_right(tasks, PROMPT, lambda task: str(task.reference_answer)),
        "a wrong number": share_right(tasks, PROMPT, lambda task: str(rng.randint(200, 300))),
    }
    rows = [[name, f"{score:.3f}"] for name, score in arms.items()]
    print(markdown([["hint", f"right answers to {len(tasks)} questions"], *rows]))


if __name__ == "__main__":
    load_module_file(Path(__file__)).main()
