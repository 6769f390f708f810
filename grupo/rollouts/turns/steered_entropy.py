"""V-Reason: gradient steps on the next token's entropy change the KV cache during generation.

Sridhar et al., 2025, arXiv:2510.17045.
"""

from grupo.core.component import component
from grupo.core.decoding import EntropySteering
from grupo.core.interfaces import Actor
from grupo.core.paper import Paper, Source
from grupo.core.types import Observation, Rollout


@component
class SteeredEntropy(EntropySteering):
    """A turn of one response whose entropy is first raised and then lowered, see `EntropySteering`.

    Gradient steps change an offset that is added to values of the KV cache in the last layer. The
    response is `sampled`, and also `off_context`, because its `logp` was computed with that offset.
    The policy must generate in this process, from text alone. A gradient step evaluates the newest
    token again, and therefore counts as a generated token in the usage.

    Args:
        every: Number of generated tokens between two updates of the offset.
        steps: Number of gradient steps in an update.
        learning_rate: Size of a step of Adam, in the unit of the values.
        decay: Decay of the moving average of the entropy, for each token.

    Raises:
        ConfigError: When the turn is taken: the policy does not generate in this process, or reads
            pictures.
    """

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        # the policy generates by the settings of this turn (`EntropySteering`)
        (response,) = await actor.decode(rollout, observation, self)
        return rollout.append_turn(observation, response)


PAPER = Paper(
    title="Video Reasoning without Training",
    use="Sampled answers become too long, and the weights must not change.",
    tags=("entropy", "length"),
    kind="evaluation",
    catalogue=("v-reason",),
    checked=("golden", "run"),
    source=Source(
        "third_party",
        "arXiv:2510.17045: the abstract, summaries, and reviews of its submission; the catalogue's"
        " row. Neither the paper nor its code was opened.",
    ),
    missing=(
        "Videos: the offset belongs to the values of the video's tokens there, and a policy that"
        " reads pictures is refused here.",
        "The variant that removes half of the video's tokens from the cache.",
        "Steering by compiled kernels and in batches: one prompt after the other is decoded.",
    ),
    deviations=(
        "The offset is on all tokens of the prompt.",
        "The entropy is lowered whenever its moving average is below the highest average so far."
        " The reviews lower it behind the highest average of the whole answer, which is not known"
        " while generating.",
        "Steps, learning rate and decay are our choice; the reviews name updates at every second"
        " token as the most accurate of those compared.",
    ),
    shown=(
        "tests/inference/test_entropy_steering.py::test_a_step_follows_the_gradient_of_the_entropy",
        "docs/answer_time.md#entropy-moved-while-answering",
    ),
)
