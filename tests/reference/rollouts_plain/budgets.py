"""Answers under token budgets: cuts of the thinking, windows of a step, and chunks of a context.

Compared: where a text is cut, which texts are forced and whether they are trained, the rewards, and
what is generated again. A token is a letter.
"""

from collections.abc import Sequence

from tests.reference.rollouts_plain.record import (
    Generated,
    Part,
    Policy,
    Question,
    Reward,
    Trained,
    forced,
    merged,
    reference,
)

Rollouts = list[Trained]
THINK_END = "</think>"


@reference(
    "brpo",
    "sail-sg/AnytimeReasoner, verl/verl/trainer/ppo/brpo.py: sample_partial_cot, __post_process and"
    " compute_token_level_advantage",
)
def brpo(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    bridge: str,
    opening: str,
    traces: int,
    budgets: Sequence[int],
    answers: int,
    limit: int,
) -> Rollouts:
    """Of each trace, its thinking and its answers: those at a cut behind `bridge`.

    Budgets at which a trace has ended share its end, where it has as many times the answers. Each
    letter of the thinking is trained once: here with the first answer behind its segment.
    """
    group = []
    for _ in range(traces):
        trace = policy(q.prompt, budgets[-1], (THINK_END,))
        ends = [min(budget, len(trace.text)) for budget in budgets]
        start = 0
        for end in sorted(set(ends)):
            is_cut = end < len(trace.text) or trace.reason != "stop"
            inserted = (bridge if is_cut else "") + opening
            begun = trace.text[:end]
            for number in range(answers * ends.count(end)):
                answer = policy(q.prompt + begun + inserted, limit).text
                read = start if number == 0 else end
                thinking = [Part(begun[:read], trained=False), Part(begun[read:])]
                parts = merged([*thinking, forced(inserted), Part(answer)])
                group.append(Trained(q.prompt, parts, reward(begun + inserted + answer)))
            start = end
    return group


@reference(
    "elastic_reasoning",
    "SalesforceAIResearch/Elastic-Reasoning, verl/workers/rollout/vllm_rollout/vllm_rollout.py,"
    " e1_mode; the appended end of the thinking is masked, as the record says",
)
def elastic_reasoning(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    thinking: int,
    answer: int,
    size: int = 8,
) -> Rollouts:
    group = []
    for _ in range(size):
        thought = policy(q.prompt, thinking, (THINK_END,))
        if thought.reason == "end":  # the release masks all that follows an end token
            group.append(Trained(q.prompt, merged([Part(thought.text)]), reward(thought.text)))
            continue
        added = "" if thought.reason == "stop" else THINK_END
        rest = policy(q.prompt + thought.text + added, answer)
        parts = [Part(thought.text), forced(added), Part(rest.text)]
        group.append(Trained(q.prompt, merged(parts), reward(thought.text + added + rest.text)))
    return group


@reference(
    "delethink",
    "McGill-NLP/the-markovian-thinker, delethink_tracing_demo.py, with the constants of"
    " r1d-1.5b_deepscaler_delethink_24k.yaml: 100 and 3996 tokens are carried",
)
def delethink(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    chunk: int,
    prefix: int,
    suffix: int,
    chunks: int,
    size: int = 8,
) -> Rollouts:
    """The rows of the group: a rollout has one for each chunk."""
    group = []
    for _ in range(size):
        made: list[tuple[str, Generated]] = [("", policy(q.prompt, chunk))]
        while made[-1][1].reason == "length" and len(made) < chunks:
            text = "".join(part.text for _, part in made)
            carried = text[:prefix] + text[max(prefix, len(text) - suffix) :]
            made.append((carried, policy(q.prompt + carried, chunk - len(carried))))
        score = reward("".join(part.text for _, part in made))
        group += [Trained(q.prompt + head, merged([Part(g.text)]), score) for head, g in made]
    return group


@reference(
    "s_grpo",
    "arXiv:2505.07686 by the record: exits of one reasoning path, and the path itself; the exits'"
    " places are drawn: `places`",
)
def s_grpo(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    places: Sequence[int],
    inserted: str,
) -> Rollouts:
    thinking = policy(q.prompt, stops=(THINK_END,)).text
    path = thinking + policy(q.prompt + thinking).text
    group = []
    for number, place in enumerate(places):
        answer = policy(q.prompt + path[:place] + inserted).text
        parts = [Part(path[:place]), forced(inserted), Part(answer)]
        score = reward(path[:place] + inserted + answer)
        group.append(Trained(q.prompt, merged(parts), score, {"exit_index": float(number)}))
    whole = Trained(q.prompt, merged([Part(path)]), reward(path), {"exit_index": len(places) * 1.0})
    return [*group, whole]


@reference(
    "t_ppo",
    "arXiv:2506.15050 by the record: at most a window of an answer in a step, and the next step"
    " goes on; unfinished answers have no outcome",
)
def t_ppo(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    unfinished: Sequence[str],
    window: int,
    longest: int,
    size: int = 8,
) -> Rollouts:
    """`unfinished`: what earlier steps have generated of the answers that are not over."""
    group = []
    for earlier in unfinished or [""] * size:
        more = policy(q.prompt + earlier, min(window, longest - len(earlier)))
        text = earlier + more.text
        is_cut = more.reason == "length" and len(text) < longest
        parts = merged([Part(earlier, moved=True), Part(more.text)])
        terms = {"cut": float(is_cut)}
        group.append(Trained(q.prompt, parts, 0.0 if is_cut else reward(text), terms))
    return group
