"""The names of signals: what is said, and by whom.

entropy              of the policy itself
logp@ref             what another says: a reference, a teacher, the policy in another context
logp@t=1.2           what the policy says at 1.2 times its temperature
reverse_kl@teacher   a comparison of the policy with another, over all it could have done
disagreement         what only a whole group can say: how far its rollouts are from each other
step/state           what the world says of an action
"""

COMPARISONS = ("reverse_kl", "forward_kl", "jsd")
GROUP_SIGNALS = ("disagreement",)


def split_name(name: str) -> tuple[str, str]:
    """What is said, and by whom: "" is the policy itself.

    >>> split_name("logp@ref"), split_name("entropy")
    (('logp', 'ref'), ('entropy', ''))
    """
    signal, _, who = name.partition("@")
    return signal, who


def is_comparison(name: str) -> bool:
    """Is it a comparison, which only the policy can make?

    >>> is_comparison("jsd@teacher"), is_comparison("logp@teacher")
    (True, False)
    """
    return split_name(name)[0] in COMPARISONS


def is_step_value(name: str) -> bool:
    """Does the world say it?"""
    return name.startswith("mark/")


def is_recomputed(name: str) -> bool:
    """Can the policy say it anew, of itself alone, whenever it is asked?

    >>> is_recomputed("entropy"), is_recomputed("logp@ref"), is_recomputed("step/state"), is_recomputed("sampled")
    (True, False, False, False)
    """
    return "@" not in name and not is_step_value(name) and name != "sampled"


def temperature_of(model: str) -> float:
    """The factor on the temperature that a name asks for; 0 where it asks for none.

    >>> temperature_of("t=1.2"), temperature_of("ref")
    (1.2, 0.0)
    """
    try:
        return float(model.removeprefix("t=")) if model.startswith("t=") else 0.0
    except ValueError:
        return 0.0
