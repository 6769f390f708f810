"""PoRo: forty rules that half of the rollouts can read, learned by heart.

The toy model of `grupo.toy.rule_books_lm` finds rules, `lamp-4`, in a document of its prompt. A
question asks for four of forty objects, and its reward is 1 if all four codes are right: without
the document one answer in 10,000. Each seed has a document of its own. All arms are evaluated on
held-out questions, without the document (`bare`) and with it (`shown`). GRPO has groups of 16
rollouts without the document; half of PoRo's are generated with it, and all are trained without it.
Both generate MAX_TOKENS tokens; a document is read, not generated. Supervised training on the
answers, in as many steps as GRPO has, is the upper bound, which must win first.

Named before the first run: `bare` of PoRo minus that of GRPO, by the exact sequential sign-flip
test with looks at 8, 12 and 16 pairs, the first of seed 8, and an error of 5 %; and whether the
mean of PoRo's `bare` is above 0.9 and GRPO's below 0.01. The test stopped after 8 pairs, of seeds
8 to 15.

python recipes/guidance/forty_rules.py FOLDER [FIRST_SEED END]
"""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from grupo.compare.sequential_design import SequentialDesign
from grupo.core.schedules import Linear, Warmup
from grupo.core.types import Task
from grupo.evidence.claims.hard_sums import trained_for_tokens
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.tiny_lm import mean_terms, trained
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.methods.policyrollout import policyrollout
from grupo.methods.sft import sft
from grupo.models.causal_lm import CausalLM
from grupo.recipe import EarlyStopping, Recipe
from grupo.rollouts.samplers.hints import append_to_prompt
from grupo.tasks.document_questions import RULES_PREFIX, DocumentQuestions
from grupo.toy.arithmetic_lm import ensure_trained
from grupo.toy.rule_books_lm import ENV, ToyRuleBooksLM
from grupo.training.learner import Learner
from grupo.util.importing import load_module_file

GROUP_SIZE, PROMPTS_PER_STEP, STEPS = 16, 16, 300
TOKENS_PER_ANSWER = 12  # four times an object, its code and a full stop or the end
MAX_TOKENS = STEPS * PROMPTS_PER_STEP * GROUP_SIZE * TOKENS_PER_ANSWER
LEARNING_RATE = 3e-4
KL_COEF = 0.001
TRAINING_SEED, EVAL_SEED = 1000, 2000
METHODS: Mapping[str, Method] = {
    "GRPO": grpo(GROUP_SIZE, kl_coef=KL_COEF),
    "PoRo": policyrollout(GROUP_SIZE // 2, kl_coef=KL_COEF, prefix_text=RULES_PREFIX),
    "supervised": sft("solution"),
}
DESIGN = SequentialDesign(max_pairs=16, looks=(8, 12, 16))


def rules_recipe(method: Method, seed: int) -> Recipe:
    """The recipe that trains the toy model on the questions about a document.

    `ensure_trained(ToyRuleBooksLM())` must have made the model.

    Args:
        method: The method.
        seed: Seed of the run and of its document.
    """
    model = ToyRuleBooksLM()
    return Recipe(
        policy=CausalLM(
            str(model.model_dir),
            max_new_tokens=model.max_new_tokens,
            tokens_per_microbatch=16384,
        ),
        env=ENV,
        tasks=DocumentQuestions(size=2000, seed=TRAINING_SEED, document_seed=seed),
        eval_tasks=0,
        method=method,
        max_steps=STEPS,
        early_stopping=EarlyStopping(max_tokens=MAX_TOKENS),
        prompts_per_step=PROMPTS_PER_STEP,
        learning_rate=Warmup(0.1, Linear(LEARNING_RATE, LEARNING_RATE / 10)),
        seed=seed,
    )


RECIPE = rules_recipe(METHODS["PoRo"], seed=0)


def with_rules(task: Task) -> Task:
    """The task with its document behind the question."""
    return append_to_prompt(task, RULES_PREFIX + task.columns["rules"])


def accuracies(learner: Learner, seed: int) -> Metrics:
    """Accuracy of 4 attempts at 100 held-out questions, without and with the document.

    Args:
        learner: Its policy generates the attempts.
        seed: Seed of the document and of the attempts.
    """
    tasks = DocumentQuestions(size=100, seed=EVAL_SEED, document_seed=seed).load()
    questions = {"bare": tasks, "shown": [with_rules(task) for task in tasks]}
    return {
        name: mean_terms(learner.policy, ENV, batch, attempts=4, seed=seed)["correct"]
        for name, batch in questions.items()
    }


ARMS: Mapping[str, Callable[[int], Learner]] = {
    "beginner": lambda seed: Learner(rules_recipe(METHODS["GRPO"], seed)),
    "GRPO": lambda seed: trained_for_tokens(rules_recipe(METHODS["GRPO"], seed)),
    "PoRo": lambda seed: trained_for_tokens(rules_recipe(METHODS["PoRo"], seed)),
    "supervised": lambda seed: trained(rules_recipe(METHODS["supervised"], seed)),
}


def run(arm: str, seed: int) -> Metrics:
    """Accuracies of the policy of an arm.

    Args:
        arm: Name of the arm.
        seed: Seed of the run and of its document.
    """
    ensure_trained(ToyRuleBooksLM())
    learner = ARMS[arm](seed)
    return {**accuracies(learner, seed), "steps": float(learner.state.step)}


def main(folder: str, first_seed: str = "8", end: str = "16") -> None:
    """Run all arms and print the tables."""
    arms = {arm: partial(run, arm) for arm in ARMS}
    runs = stored_runs(Path(folder) / "runs.jsonl", arms, range(int(first_seed), int(end)))
    print(paired_table(runs, ["bare", "shown", "steps"], "GRPO"))
    tested = {arm: runs[arm] for arm in ("GRPO", "PoRo")}
    print(sequential_table(tested, "bare", "GRPO", DESIGN))


if __name__ == "__main__":
    load_module_file(Path(__file__)).main(*sys.argv[1:])
