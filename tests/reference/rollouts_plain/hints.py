"""Groups that are sampled again with hints where all of their rollouts fail.

Compared: the condition, the hints and their order, the rollouts that stay, and the prompt that each
is trained behind.
"""

import re
from collections.abc import Callable, Sequence

from tests.reference.rollouts_plain.record import (
    Part,
    Policy,
    Question,
    Reward,
    Trained,
    forced,
    merged,
    move,
    reference,
    sample,
    solved,
)

Rollouts = list[Trained]
Hinted = Callable[[str, str], str]  # question and hint to prompt


@reference("ghpo", "hkgc-1/GHPO, src/ghpo/ghpo_trainer.py, one question per device")
def ghpo(q: Question, policy: Policy, reward: Reward, *, lead_in: str, size: int = 8) -> Rollouts:
    group = sample(q.prompt, policy, reward, size)
    solution = q.columns["solution"]
    for share in (0.25, 0.5, 0.75):
        if not solved(group):
            hint = solution[: round(len(solution) * share)]
            group = sample(q.prompt + lead_in + hint, policy, reward, size)
    return group


@reference(
    "sage_self_hint",
    "BaohaoLiao/SAGE, recipe/hint/hint_trainer.py, method sage; one call per level, and hints that"
    " hold the answer are rejected, as the record says",
)
def sage_self_hint(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    ask: Callable[[int], str],
    hinted: Hinted,
    size: int = 8,
) -> Rollouts:
    group = sample(q.prompt, policy, reward, size)
    for level in (1, 2, 3):
        if solved(group):
            return group
        _, _, hint = policy(ask(level)).text.partition("<hint>")
        hint, closing, _ = hint.partition("</hint>")
        if closing and hint.strip() and q.answer not in hint:
            group = sample(hinted(q.prompt, hint.strip()), policy, reward, size)
    return group


@reference(
    "scaf_grpo",
    "dvlab-research/Scaf-GRPO, hint_mix_grpo/trainer/ray_trainer.py, replace_num 1; 12 levels and a"
    " warm-up of 15 % of the run, as the record says",
)
def scaf_grpo(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    hinted: Callable[[str, Sequence[str]], str],
    progress: float,
    size: int = 8,
) -> Rollouts:
    group = sample(q.prompt, policy, reward, size)
    if solved(group) or progress < 0.15:
        return group
    shown = [tier[: n + 1] for tier in q.columns["hints"] for n in range(len(tier))][:12]
    tried = [sample(hinted(q.prompt, texts), policy, reward, 1)[0] for texts in shown]
    helped = [rollout for rollout in tried if (rollout.reward or 0) > 0]
    return [*helped[:1], *group[len(helped[:1]) :]]  # in the first place


@reference(
    "guide_grpo",
    "vaskar-open-source-research/guide_rl, verl/trainer/ppo/ray_trainer.py: rollout and"
    " _roll_with_prompt_variant; groups of equal accuracy are left out",
)
def guide_grpo(
    q: Question, policy: Policy, reward: Reward, *, hinted: Hinted, size: int = 8
) -> Rollouts:
    group = sample(q.prompt, policy, reward, size)
    if not solved(group):
        with_hint = sample(hinted(q.prompt, q.columns["hint"]), policy, reward, size)
        group = [move(rollout, q.prompt) for rollout in with_hint]
    return group if len({rollout.reward for rollout in group}) > 1 else []


@reference("policyrollout", "arXiv:2510.09474, section 4.3 as the record quotes it")
def policyrollout(
    q: Question, policy: Policy, reward: Reward, *, hinted: Hinted, size: int = 8
) -> Rollouts:
    plain = sample(q.prompt, policy, reward, size)
    with_rules = sample(hinted(q.prompt, q.columns["rules"]), policy, reward, size)
    return [*plain, *(move(rollout, q.prompt) for rollout in with_rules)]


@reference(
    "cog_rethinker",
    "arXiv:2510.15979, abstract, and the record: both stages show solved tasks. Our reading: an"
    " answer of the latest failed group is shown, and copies come behind the group",
)
def cog_rethinker(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    decompose: Callable[[str], str],
    correct: Callable[[str, str], str],
    size: int = 8,
) -> Rollouts:
    group = sample(q.prompt, policy, reward, size)
    if solved(group):
        return group
    group = sample(decompose(q.prompt), policy, reward, size)
    if not solved(group):
        group = sample(correct(q.prompt, group[0].text), policy, reward, size)
    copies = [
        Trained(q.prompt, (forced(r.text, trained=True),), None, baseline=False)
        for r in group
        if (r.reward or 0) > 0
    ]
    return [*group, *copies]


@reference(
    "xrpo",
    "arXiv:2510.06672 by the record: unsolved tasks are attempted again behind worked examples, and"
    " trained behind them. Our reading: the failed rollouts stay in the group",
)
def xrpo(
    q: Question, policy: Policy, reward: Reward, *, shown: Callable[[str], str], size: int = 8
) -> Rollouts:
    group = sample(q.prompt, policy, reward, size)
    if solved(group):
        return group
    return [*group, *sample(shown(q.prompt), policy, reward, size)]


@reference(
    "expo_self_explanation",
    "arXiv:2507.02834 by the record: the policy explains the answer in every group, and imitates"
    " its explanation with the answer behind the plain prompt",
)
def expo_self_explanation(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    ask: Callable[[str, str], str],
    recited: Callable[[str, str], str],
    size: int = 8,
    count: int = 1,
) -> Rollouts:
    group = sample(q.prompt, policy, reward, size)
    for _ in range(count):
        explanation = policy(ask(q.prompt, q.answer)).text
        text = forced(recited(explanation, q.answer), trained=True)
        group.append(Trained(q.prompt, merged([text]), None, baseline=False))
    return group


def _leaks(hint: str, answer: str) -> bool:
    """Whether a hint of HiLL tells the answer; one of two letters must be introduced as such."""
    if len(answer) > 2:
        return answer.lower() in hint.lower()
    introduced = [f"{words} {answer}" for words in ("=", "equals", "is", "equal to", "answer:")]
    return any(text.lower() in hint.lower() for text in [*introduced, f"\\boxed{{{answer}}}"])


@reference(
    "hill",
    "Andree-9/HiLL, verl/trainer/ppo/hill_ray_trainer.py and hinter_utils.py. Our reading: all"
    " rollouts are in one group, and the advantage leaves out those of the hints not chosen",
)
def hill(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    ask: Callable[[str, str, str], str],
    hinted: Hinted,
    size: int = 8,
    hints: int = 4,
) -> Rollouts:
    attempts = sample(q.prompt, policy, reward, size)
    group = [a.with_terms(is_hint=0, hint_index=0) for a in attempts]
    if solved(attempts):
        return group
    request = ask(q.prompt, attempts[0].text, q.columns["solution"])  # all of them are equal
    written = [policy(request).text for _ in range(hints)]
    tries: Rollouts = []
    for number, text in enumerate(written, 1):
        found = re.search(r"<hint>(.*?)</hint>", text, re.IGNORECASE | re.DOTALL)
        hint = found[1].strip() if found else ""
        rejected = not hint or _leaks(hint, q.answer)
        terms = {"is_hint": 1.0, "hint_index": float(number), "hint_rejected": float(rejected)}
        group.append(Trained(request, merged([Part(text)]), None, terms))
        if not rejected:
            with_hint = sample(hinted(q.prompt, hint), policy, reward, size)
            tries += [r.with_terms(is_hint=0, hint_index=number) for r in with_hint]
    return [*group, *tries]
