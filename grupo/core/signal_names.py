"""Names of signals: `<quantity>` of the policy, `<quantity>@<model>` of another model.

entropy              of the policy itself
logp@ref             of another model: a reference, a teacher, the policy with another prompt
logp@current         of the policy at the start of the step, in the context that is trained
logp@t=1.2           of the policy at 1.2 times its temperature
reverse_kl@teacher   a divergence between the policy's and the other model's full distributions
disagreement         of a whole group: how far its rollouts differ from one another
concentration        of a row: the mean cosine between the hidden states of its actions
step/state           a number of the environment for an action
"""

COMPARISONS = ("reverse_kl", "forward_kl", "jsd")
GROUP_SIGNALS = ("disagreement",)
ROW_SIGNALS = ("concentration",)
CURRENT = "current"  # the policy itself at the start of a step
ROUTER_LOSS = "router_loss"  # of a row: its share of the load-balancing loss, at its first action
EXPERT_COST = "expert_cost"  # the input of a batch with which the policy computes it
SAMPLER = "sampler"  # the inference engine, whose log-probs are recorded


def split_name(name: str) -> tuple[str, str]:
    """The quantity and the model of a signal's name; "" is the policy itself.

    >>> split_name("logp@ref"), split_name("entropy")
    (('logp', 'ref'), ('entropy', ''))
    """
    signal, _, model = name.partition("@")
    return signal, model


def is_comparison(name: str) -> bool:
    """True for divergences between full distributions, which only the policy computes.

    >>> is_comparison("jsd@teacher"), is_comparison("logp@teacher")
    (True, False)
    """
    return split_name(name)[0] in COMPARISONS


def is_step_value(name: str) -> bool:
    """True for numbers of the environment, such as `step/reward`."""
    return name.startswith("step/")


def temperature_of(model: str) -> float:
    """The factor on the temperature in a model's name; 0 if the name sets none.

    >>> temperature_of("t=1.2"), temperature_of("ref")
    (1.2, 0.0)
    """
    try:
        return float(model.removeprefix("t=")) if model.startswith("t=") else 0.0
    except ValueError:
        return 0.0
