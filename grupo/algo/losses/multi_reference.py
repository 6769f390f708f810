"""Likelihood weighted towards several policies, each trained for an auxiliary reward."""

from jaxtyping import Float
from torch import Tensor

from grupo.algo.losses.base import Loss
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import check_field, component
from grupo.core.paper import Paper, Source
from grupo.core.ranges import PositiveFloat
from grupo.core.requires import Requires


@component
class MultiReferenceNLL(Loss):
    """-w log pi with w = prod_i (pi_i / pi_old)^(lam_i / S) e^(A / S), S = sum of all lam, (N, T).

    w is a constant. The expected loss under pi_old is least at pi* ~ prod_i pi_i^(lam_i / S)
    e^(A / S), which maximises E[A] - sum_i lam_i KL(pi || pi_i) in each state.
    Source: TSCAC, Cai et al., arXiv:2302.01680, stage two.

    Args:
        coefficients: name of each policy pi_i, an auxiliary model of the recipe, with lam_i.

    Raises:
        ConfigError: There is no policy.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> likes = {"logp@likes": [[-1.0]]}
    >>> batch = make_batch(group=[0], advantage=[0.0], logp=-1.0, signals=likes)
    >>> MultiReferenceNLL((("likes", 2.0),))(perturb_logp(batch, [[0.5]]), batch).tolist()
    [[0.5]]
    """

    coefficients: tuple[tuple[str, PositiveFloat], ...]

    def __post_init__(self) -> None:
        check_field(self, "coefficients", bool(self.coefficients), "at least one policy")

    @property
    def requires(self) -> Requires:
        return Requires(signals=[f"logp@{name}" for name, _ in self.coefficients])

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -self.weight(batch) * pi.logp

    def weight(self, batch: Batch) -> Float[Tensor, "N T"]:
        """The weight w of each action."""
        S = sum(lam for _, lam in self.coefficients)
        log_weight = batch.advantage / S
        for name, lam in self.coefficients:
            log_ratio = batch.signals[f"logp@{name}"] - batch.old_logp
            log_weight = log_weight + lam / S * log_ratio
        return log_weight.exp()


PAPER = Paper(
    title="Two-Stage Constrained Actor-Critic for Short Video Recommendation",
    use="One reward is to rise while policies trained for other rewards stay close.",
    tags=("reward", "kl", "off-policy"),
    kind="pipeline",
    catalogue=("tscac-recsys",),
    checked=("golden", "run"),
    source=Source(
        "code",
        "AIDefender/TSCAC, README.md, algos/MULTI_CRITIC.py and MULTI_CRITIC_AWAC_DDPG.py, for the "
        "stages and critics; two reviews of arXiv:2302.01680; the closed form is derived in the "
        "catalogue's row",
    ),
    missing=("A log of another policy: each stage samples its own sessions.",),
    deviations=(
        "The loss is that of the closed form, for a policy with probabilities; the released actor "
        "has one continuous output, whose loss is weighted by a ratio of Gaussians of at most 1.",
        "In `recipes/pipelines/tscac.py` there is a policy of stage one for each auxiliary reward; "
        "the code has one, trained on a weighted sum of all rewards.",
    ),
    shown=(
        "docs/pipelines_shown.md#tscac",
        "tests/algo/losses/test_multi_reference.py::test_a_bandit_reaches_the_optimal_policy",
        "tests/algo/losses/test_multi_reference.py"
        "::test_main_and_auxiliary_rewards_by_the_weight_of_the_policies",
    ),
)
