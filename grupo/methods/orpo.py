"""ORPO: likelihood and odds ratio, no reference. Hong et al., 2024, arXiv:2403.07691."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import ChosenNLL, Logistic, Preference, log_odds
from grupo.core.numbers import NonNegative
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import PreferencePairs


def orpo(odds_coef: NonNegative = 0.1) -> Method:
    """loss = mean over pairs of -m(chosen) - odds_coef log sigmoid(o(chosen) - o(rejected)).

    Eq. 6 and 7: m = log pi(y) / |y|, o = log(p / (1 - p)) with p = e^m. There is no reference.

    Args:
        odds_coef: weight of the odds ratio (lambda in the paper).
    """
    loss = ChosenNLL() + odds_coef * Preference(log_odds, Logistic(1.0))
    return Method(sampler=PreferencePairs(), advantage=identity, loss=loss, aggregation=group_mean)


PAPER = Paper(
    title="ORPO: Monolithic Preference Optimization without Reference Model",
    use="Supervised fine-tuning and preferences are to be learned in one stage.",
    tags=("preferences", "sft"),
    trl="ORPOConfig(beta=0.1); its NLL includes the prompt",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "xfactlab/orpo: src/orpo_trainer.py, scripts/run_mistral_orpo_beta.sh; TRL 1.16, "
        "experimental/orpo/orpo_trainer.py",
    ),
    plan=(
        "the script: 5 passes over the pairs, one update for each batch of 8 per device; "
        "prompts_per_step is the batch"
    ),
    deviations=(
        "The likelihood is that of the answer, a mean over pairs. The script's is a mean over the "
        "tokens of 8 prompts and their chosen answers: it does not set disable_prompt_loss. It "
        "leaves out all end tokens, whose id is that of the padding.",
        "The odds are those of the answer's tokens; in the script, also of the padding token that "
        "follows them.",
    ),
    audit=(
        "both terms and odds_coef 0.1 compared with orpo_trainer.py and the script, the odds-ratio "
        "term and its gradient with numbers that TRL 1.16 computed"
    ),
    shown=("docs/comparisons/preferences.md#ten-methods-under-a-noisy-and-under-the-true-judge",),
)
