"""Directional stimulus prompting: a small policy writes keywords for a model that stays as it is.

The frozen model summarises descriptions of Debian packages (`debian_packages.py`) with the keywords
in its prompt. The policy, adapters on the same model, is trained to write them: first on keywords
of the summaries, then on ROUGE-L of the frozen model's summaries.

Li et al., 2023, arXiv:2302.11520.

grupo train recipes/real/hinted_summaries.py:PIPELINE --run runs/hints
python recipes/real/hinted_summaries.py [MODEL]   # what keywords of the summary could gain

`pipeline(served("http://127.0.0.1:8000/v1", "NAME"))` is the same with a frozen model behind an
OpenAI-compatible address.

Named before the first run: ROUGE-L on the 100 held-out packages of greedy keywords after both
stages minus that after the supervised stage alone, at equal steps of supervised training, by the
exact sequential sign-flip test with looks at 8, 12 and 16 pairs. Keywords of the reference summary
are the upper bound, which must exceed no keywords first.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from grupo import CausalLM, Evaluation, Recipe
from grupo.compare.table_formats import markdown
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.methods.kl_in_reward import kl_in_reward
from grupo.methods.sft import sft
from grupo.models.lora import Lora
from grupo.pipeline import Pipeline, Stage
from grupo.rewards import ChatEndpoint, Downstream, LocalModel, RougeL
from grupo.rewards.judges import ChatModel
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.util.importing import load_module_file

PACKAGES = load_module_file(Path(__file__).with_name("debian_packages.py"))
HINT_SCORES = load_module_file(Path(__file__).with_name("hint_scores.py"))
MODEL = "smollm2"
HELD_OUT, TRAINED = 100, 2_000  # packages
EXTRACT = "Extract the keywords of this text, separated by semicolons: "
ANSWER = (
    "Summarize the text in one short line of at most ten words. Use the keywords.\n\n"
    "Text: {description}\n\nKeywords: {completion}"
)
MAX_NEW_TOKENS = 24  # of the keywords, and of a summary
MIN_ROUGE = 0.25  # of a summary that counts as a success
TASKS = PACKAGES.PackageTasks(EXTRACT, HELD_OUT, TRAINED)
HELD_OUT_TASKS = PACKAGES.PackageTasks(EXTRACT, 0, HELD_OUT)


def local(model: str = MODEL) -> LocalModel:
    """The frozen model in this process."""
    return LocalModel(model, max_tokens=MAX_NEW_TOKENS)


def served(base_url: str, model: str) -> ChatEndpoint:
    """A frozen model behind an OpenAI-compatible address, without a key.

    Args:
        base_url: The address, up to and including `/v1`.
        model: The model's name there.
    """
    return ChatEndpoint(model, base_url, api_key_env="", temperature=0.0, max_tokens=MAX_NEW_TOKENS)


def recipe(frozen: ChatModel, model: str = MODEL) -> Recipe:
    """The stage of RL: ROUGE-L of the frozen model's summaries, minus a price of the KL divergence.

    Args:
        frozen: The model that summarises.
        model: Folder or name of the model whose adapters write the keywords.
    """
    return Recipe(
        policy=CausalLM(model, Lora(16), max_new_tokens=MAX_NEW_TOKENS, apply_chat_template=True),
        env=SingleTurn((RewardTerm("rouge", Downstream(frozen, ANSWER, RougeL())),)),
        tasks=TASKS,
        eval_tasks=HELD_OUT_TASKS,
        method=kl_in_reward(initial_kl_coef=0.005),
        max_steps=40,
        prompts_per_step=8,
        learning_rate=1e-4,
        evaluation=Evaluation(attempts=1, success=SuccessCriterion("rouge", MIN_ROUGE)),
        save_every=40,
    )


def pipeline(frozen: ChatModel, model: str = MODEL) -> Pipeline:
    """Supervised training on keywords of the summaries, then RL.

    Args:
        frozen: The model that summarises.
        model: Folder or name of the model whose adapters write the keywords.
    """
    rl = recipe(frozen, model)
    supervised = rl.replace(method=sft(), max_steps=40, learning_rate=3e-4)
    return Pipeline((Stage("supervised", supervised), Stage("hints", rl)))


PIPELINE = pipeline(local())


def mean_rouge(
    frozen: ChatModel, tasks: Sequence[Task], hint: Callable[[Task], str], prompt: str = ANSWER
) -> float:
    """The mean ROUGE-L of the frozen model's summaries with hints in its prompt."""
    return HINT_SCORES.mean_score(Downstream(frozen, prompt, RougeL()), tasks, hint)


def main(model: str = MODEL) -> None:
    """Print the mean ROUGE-L without keywords, with those of a summary, and of another package."""
    frozen, tasks = local(model), HELD_OUT_TASKS.load()
    without = ANSWER.replace(" Use the keywords.", "").replace("\n\nKeywords: {completion}", "")
    following = dict(zip((task.key for task in tasks), [*tasks[1:], tasks[0]], strict=True))
    scores = {
        "none": mean_rouge(frozen, tasks, lambda task: "", f"{without}{{completion}}"),
        "of the reference summary": mean_rouge(
            frozen, tasks, lambda task: task.columns["completion"]
        ),
        "of another package": mean_rouge(
            frozen, tasks, lambda task: following[task.key].columns["completion"]
        ),
    }
    rows = [[name, f"{score:.3f}"] for name, score in scores.items()]
    print(markdown([["keywords", f"ROUGE-L of {len(tasks)} summaries"], *rows]))


if __name__ == "__main__":
    load_module_file(Path(__file__)).main(*sys.argv[1:])
