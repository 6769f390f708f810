"""Pairs of answers: the data of preference losses.

Compared: that a pair is two given answers behind the task's prompt, the chosen one first, which is
marked by its reward; that the policy generates nothing; and the six rows of the self-improving
loss.
"""

from collections.abc import Callable

from tests.reference.rollouts_plain.record import (
    Policy,
    Question,
    Reward,
    Trained,
    forced,
    reference,
)

DPO = "arXiv:2305.18290, section 4: a data set of prompts with a preferred and another answer"
LIKE_DPO = "the pairs of DPO, by the method's record"


def _given(prompt: str, text: str, reward: float | None) -> Trained:
    return Trained(prompt, (forced(text, trained=True),), reward)


def pair(q: Question, policy: Policy, reward: Reward) -> list[Trained]:
    chosen = _given(q.prompt, q.columns["chosen"], 1.0)
    return [chosen, _given(q.prompt, q.columns["rejected"], 0.0)]


reference("dpo", DPO)(pair)
for name in ("bco", "bradley_terry", "cdpo", "gepo", "hinge", "ipo", "ln_dpo", "mpo"):
    reference(name, LIKE_DPO)(pair)
for name in ("nca", "orpo", "robust_dpo", "simpo"):
    reference(name, LIKE_DPO)(pair)


@reference("modpo", "arXiv:2310.03708 by the record: the environment scores the margin")
def modpo(q: Question, policy: Policy, reward: Reward) -> list[Trained]:
    return [r.with_terms(margin=reward(r.text)) for r in pair(q, policy, reward)]


@reference(
    "srpo_self_improving",
    "arXiv:2406.01660 by the record: log-ratios of each answer alone and as a revision of each",
)
def srpo_self_improving(
    q: Question, policy: Policy, reward: Reward, *, revise: Callable[[str, str], str]
) -> list[Trained]:
    texts = (q.columns["chosen"], q.columns["rejected"])
    plain = [_given(q.prompt, text, None) for text in texts]
    revised = [_given(revise(q.prompt, before), text, None) for text in texts for before in texts]
    return [*plain, *revised]
