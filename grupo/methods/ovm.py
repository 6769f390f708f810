"""OVM: a head predicts the outcome of partial answers. Yu et al., 2023, arXiv:2311.09724."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import NLL, OutcomeValueLoss
from grupo.core.aux_heads import DeepHead, FeatureHead
from grupo.core.numbers import NonNegative
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import LabelledAnswers


def ovm(head: FeatureHead = DeepHead("value"), nll_coef: NonNegative = 1.0) -> Method:
    """loss = mean over tokens of (V_t - y)^2 - nll_coef log pi_t, y the label of the whole answer.

    The value of a partial answer is then the probability that its final answer is right. The rows
    have one answer with a label. `StepBeam` and `BestOf(n, ByHead("value"))` choose by the head.

    Args:
        head: the head `value`.
        nll_coef: weight of the likelihood of all answers, right or wrong (paper: 1).
    """
    return Method(
        sampler=LabelledAnswers(),
        advantage=identity,
        loss=OutcomeValueLoss(head) + nll_coef * NLL(),
        aggregation=token_mean,
    )


PAPER = Paper(
    title="OVM, Outcome-supervised Value Models for Planning in Mathematical Reasoning",
    use="Answers are labelled right or wrong as a whole, and partial answers are to be scored.",
    tags=("critic", "process-reward", "reward"),
    checked=("golden", "properties", "run"),
    catalogue=("ovm",),
    source=Source("code", "FreedomIntelligence/OVM, utils/verifier_models.py: Verifier"),
    plan="a pass over the answers, one update per batch (paper: one epoch at a rate of 1e-5)",
    missing=(
        "A trained language model: no run shows calibrated values or a better choice.",
        "GSM8K, and the comparison with a vote at equal tokens.",
        "A gain and an offset of the hidden states, dropout of 0.2 before the head, and its start"
        " as the mean of the output embeddings.",
    ),
    deviations=(
        "The mean is over all tokens of a batch; the release sums the squared errors of an answer's"
        " tokens and takes the mean over answers.",
        "The head has a bias; the value is read before each token, not behind it.",
    ),
    audit="loss compared with the release's Verifier",
)
