"""Recipes that train the real model on a family of tasks, and the parts of a family's tasks.

The first 50 tasks of a family are those of `docs/real_survey.md`; wordings were compared on the
next 10. Training uses the tasks after them, and is evaluated on the first 50.
"""

from pathlib import Path

from grupo import Adam, CausalLM, Evaluation, Recipe
from grupo.evidence.survey import FamilyTasks, TaskFamily
from grupo.methods.grpo import grpo
from grupo.util.importing import load_module_file

FAMILIES = load_module_file(Path(__file__).with_name("families.py")).FAMILIES
MODEL = "smollm2"  # where no --model names another one
SURVEYED, COMPARED, MAX_TRAINED = 50, 10, 2_000  # tasks


def surveyed(family: TaskFamily) -> FamilyTasks:
    """The tasks of the survey, which training is evaluated on."""
    return FamilyTasks(family, count=SURVEYED)


def compared(family: TaskFamily, wording: int) -> FamilyTasks:
    """The tasks on which wordings are compared, in one of them."""
    return FamilyTasks(family, SURVEYED, COMPARED, wording)


def trained(family: TaskFamily) -> FamilyTasks:
    """The tasks to train on."""
    return FamilyTasks(family, SURVEYED + COMPARED, MAX_TRAINED)


def chat_model(model: str, max_new_tokens: int, stop_strings: tuple[str, ...] = ()) -> CausalLM:
    """The model as a policy.

    Args:
        model: Folder or hub name of a chat model.
        max_new_tokens: Limit of an answer, in tokens.
        stop_strings: Strings that end an answer, besides the end token.
    """
    return CausalLM(
        model, max_new_tokens=max_new_tokens, stop_strings=stop_strings, apply_chat_template=True
    )


def family_recipe(name: str, model: str = MODEL) -> Recipe:
    """GRPO on a family of tasks: 24 steps of 8 prompts with 8 answers each.

    Args:
        name: Name of the family.
        model: Folder or hub name of a chat model.
    """
    family = FAMILIES[name]
    return Recipe(
        policy=chat_model(model, family.max_new_tokens, family.stop_strings),
        env=family.env,
        tasks=trained(family),
        eval_tasks=surveyed(family),
        method=grpo(group_size=8, kl_coef=0.0),
        max_steps=24,
        prompts_per_step=8,
        learning_rate=1e-5,
        optimizer=Adam(),
        evaluation=Evaluation(attempts=8, success=family.success),
        save_every=24,  # a checkpoint has 1.6 GB
    )
