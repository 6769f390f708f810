"""Methods that drop groups, against GRPO at equal updates: the difficulty filter and VSPO.

`task_choice.py` and `prs_vspo.py` compare at equal tokens, where groups that are dropped leave
fewer updates. Here every arm has UPDATES updates on 16 groups, whatever it generates for them.

Named before the first run of these seeds: the accuracy on held-out sums of the difficulty filter
(`learnable`, the sums of five and six digits of `task_choice.py`) and of VSPO (`correct`, the sums
of `prs_vspo.py`), each minus that of GRPO in the same world; each method is to be greater. By the
exact sequential sign-flip test with looks at 8 and 12 pairs and an error of 5 % for both together.

python recipes/guidance/equal_updates.py FILE [FIRST_SEED END]    # FILE has a line for each run
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from grupo.compare.sequential_design import SequentialDesign
from grupo.evidence.claims.hard_sums import ENV, EVAL_SEED
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.published_runs import published_runs
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.stored_runs import Metrics
from grupo.evidence.claims.three_sources import accuracy_by_source, three_sources_recipe
from grupo.evidence.claims.tiny_lm import mean_terms, trained
from grupo.method import Method
from grupo.recipe import EarlyStopping, Recipe
from grupo.tasks.digit_sums import DigitSums
from grupo.toy.arithmetic_lm import ensure_trained
from grupo.toy.digit_sums_lm import ToyDigitSumsLM
from grupo.training.learner import Learner
from grupo.util.importing import load_module_file

FOLDER = Path(__file__).parent
TASK_CHOICE = load_module_file(FOLDER / "task_choice.py")
PRS_VSPO = load_module_file(FOLDER / "prs_vspo.py")
UPDATES = 12
DESIGN = SequentialDesign(max_pairs=12, looks=(8, 12)).shared_by(2)


def after_updates(recipe: Recipe) -> Learner:
    """The learner after `UPDATES` steps, however many tokens they take."""
    ensure_trained(ToyDigitSumsLM())
    return trained(recipe.replace(max_steps=UPDATES, early_stopping=EarlyStopping()))


def three_sources(method: Method, seed: int) -> Metrics:
    """Accuracies on sums of three sources, of which one can be learned from."""
    learner = after_updates(three_sources_recipe(method, seed=seed))
    return {**accuracy_by_source(learner, seed), "tokens": float(learner.state.generated_tokens)}


def recurring(method: Method, seed: int) -> Metrics:
    """Accuracy on held-out sums after training on 64 sums that recur."""
    learner = after_updates(PRS_VSPO.recipe(method, seed))
    held_out = DigitSums(PRS_VSPO.MIN_TERMS, PRS_VSPO.MAX_TERMS, size=100, seed=EVAL_SEED).load()
    correct = mean_terms(learner.policy, ENV, held_out, attempts=4, seed=seed)["correct"]
    return {"correct": correct, "tokens": float(learner.state.generated_tokens)}


def main(file: Path, seeds: Sequence[int]) -> None:
    """Run what is missing in the file and print the tables."""
    filters = {
        name: lambda seed, name=name: three_sources(TASK_CHOICE.METHODS[name], seed)
        for name in ("GRPO", "difficulty filter")
    }
    copies = {
        f"{name}, recurring sums": lambda seed, name=name: recurring(PRS_VSPO.METHODS[name], seed)
        for name in ("GRPO", "VSPO")
    }
    runs = published_runs(file, {**filters, **copies}, seeds)
    for arms, metric in ((filters, "learnable"), (copies, "correct")):
        chosen = {name: runs[name] for name in arms}
        baseline = next(iter(arms))
        print(paired_table(chosen, [metric, "tokens"], baseline))
        print(sequential_table(chosen, metric, baseline, DESIGN))


if __name__ == "__main__":
    bounds = [int(text) for text in sys.argv[2:4]] or [0, 12]
    load_module_file(Path(__file__)).main(Path(sys.argv[1]), range(*bounds))
