"""PRefLexOR: a corpus into the weights by preferences. Buehler, 2024, arXiv:2410.12375.

Stage 1, ORPO: the policy's answer with retrieved context is chosen over its answer without. Stage
2, EXO: right answers over wrong ones, of which the thoughts are not trained on. The corpus is
`fact_sheets.py`; `preflexor_table.py` writes the table of `docs/pipelines_shown.md`.

python recipes/pipelines/preflexor.py       # writes the corpus and the model
grupo train recipes/pipelines/preflexor.py:PIPELINE --run runs/preflexor
"""

from fact_sheets import CONTEXT, Retrieved, questions, save_model, write_corpus

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import LogRatio, Preference, ReverseLogistic
from grupo.core.numbers import NonNegative, Positive
from grupo.core.paper import Paper, Source
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.methods.orpo import orpo
from grupo.models.causal_lm import CausalLM
from grupo.pipeline import CollectedTasks, CollectStage, Pipeline, Stage
from grupo.recipe import Recipe
from grupo.rewards import ExactMatch, InsideTag
from grupo.rollouts.samplers import ContextPairs, OnlyAnswerTokens, PreferencePairs
from grupo.tasks import FromFunction
from grupo.util.user_paths import models_dir

PAPER = Paper(
    title="PRefLexOR: Preference-based Recursive Language Modeling for Exploratory Optimization of "
    "Reasoning and Agentic Thinking",
    use="A model is to answer from a corpus that it cannot search when it is used.",
    tags=("preferences", "hints"),
    kind="pipeline",
    catalogue=("preflexor",),
    checked=("golden", "run"),
    source=Source(
        "code",
        "lamm-mit/PRefLexOR: PRefLexOR/active_trainer.py and PRefLexOR_train_Phase-I-and-II.ipynb:"
        " ORPO with beta 0.1; exo_pair with beta 0.5 and label smoothing 5e-3,"
        " dynamic_answer_comparison",
    ),
    missing=("The loop of reflections at inference: Workshop makes such revisions.",),
    deviations=(
        "Questions are those of the corpus, not written by a model from random chunks.",
        "Retrieval is BM25, not the nearest embeddings of an index.",
        "The answer with context is the policy's own where it is right, not that of another model.",
        "The recipe makes the pairs of stage 1 before the training: made during the training, as by"
        " preflexor_orpo, answers did not improve here.",
    ),
    shown=("docs/pipelines_shown.md#preflexor",),
)


def preflexor_orpo(corpus: str, odds_coef: NonNegative = 0.1) -> Method:
    """Stage 1: ORPO on pairs with and without retrieved context, made during training.

    loss = -m(y_w) - odds_coef log sigmoid(o(y_w) - o(y_l)), m = log pi(y) / |y| without the
    context, o = log(p / (1 - p)), p = e^m.

    Args:
        corpus: File of the passages, one on each line.
        odds_coef: Weight of the odds ratio (the notebook: 0.1).
    """
    return orpo(odds_coef).replace(sampler=ContextPairs(Retrieved(corpus), CONTEXT))


def preflexor_exo(beta: Positive = 0.5, label_smoothing: Positive = 5e-3) -> Method:
    """Stage 2: EXO of given pairs by log pi / pi_ref of the tokens behind the thoughts.

    Args:
        beta: Inverse temperature (the notebook: 0.5).
        label_smoothing: Probability of the rejected answer in the target (the notebook: 5e-3).
    """
    return Method(
        sampler=OnlyAnswerTokens(PreferencePairs()),
        advantage=identity,
        loss=Preference(LogRatio(), ReverseLogistic(beta, label_smoothing)),
        aggregation=group_mean,
    )


def base_recipe(model: str, seed: int = 0) -> Recipe:
    """Policy, environment and questions of all stages.

    Args:
        model: Folder of the model that reads sheets.
        seed: Seed of the run.
    """
    return Recipe(
        policy=CausalLM(model, max_new_tokens=16, tokens_per_microbatch=8192),
        env=SingleTurn((RewardTerm("correct", ExactMatch(InsideTag("answer"))),)),
        tasks=FromFunction(questions),
        eval_tasks=0,  # questions of the corpus that is learned are not held out
        prompts_per_step=32,
        save_every=1000,
        seed=seed,
    )


def pipeline(model: str, corpus: str, seed: int = 0) -> Pipeline:
    """Pairs by retrieval, ORPO on them, pairs of its policy by rejection sampling, and EXO.

    Args:
        model: Folder of the model that reads sheets.
        corpus: File of the sheets.
        seed: Seed of all stages.
    """
    base = base_recipe(model, seed)
    by_context = ContextPairs(Retrieved(corpus), CONTEXT)
    first = base.replace(
        method=orpo(), tasks=CollectedTasks("by_context"), max_steps=300, learning_rate=1e-3
    )
    second = base.replace(
        method=preflexor_exo(),
        tasks=CollectedTasks("pairs"),
        max_steps=20,
        learning_rate=2e-4,
    )
    return Pipeline(
        (
            CollectStage("by_context", base, sampler=by_context),
            Stage("orpo", first),
            CollectStage("pairs", base, attempts=8),
            Stage("exo", second, start="orpo"),
        )
    )


FOLDER = models_dir() / "fact-sheets"
PIPELINE = pipeline(str(FOLDER / "model"), str(FOLDER / "sheets.txt"))

if __name__ == "__main__":
    save_model(FOLDER)
    write_corpus(FOLDER)
