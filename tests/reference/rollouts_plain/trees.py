"""Groups that share beginnings: trees of segments, of turns, and of tool calls, and prefix values.

Compared: what is generated once and what again, which leaves there are and in which order, and the
values of prefixes. An observation between two turns is a part that is not trained.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.reference.rollouts_plain.record import (
    Part,
    Policy,
    Question,
    Reward,
    Trained,
    forced,
    merged,
    reference,
    sample,
)

Rollouts = list[Trained]
Reply = Callable[[str], str | None]  # text of an answer to the environment's observation


@dataclass
class Path:
    """A rollout of ARPO in progress.

    Args:
        parts: Its texts.
        turns: Its turns since it began or branched off.
        first: Entropy of the first turn, that of the rollout that it left included.
    """

    parts: list[Part]
    turns: int = 0
    first: float | None = None


@reference(
    "arpo_agentic",
    "dongguanting/ARPO, vllm_rollout_with_tools.py: generate_sequences, beam_size 2. Entropy is"
    " that of the turn behind a tool's result, and the rise is against the rollout's own first"
    " turn, as the record says",
)
def arpo_agentic(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    reply: Reply,
    entropy: Callable[[str], float],
    size: int = 16,
    initial: int = 8,
    beam: int = 2,
) -> Rollouts:
    """All live rollouts take a turn together. Probabilities of branches must be 0 or 1."""
    made = [Path([]) for _ in range(min(initial, size))]
    live = list(made)
    while live:
        new, going = [], []
        for path in live:
            before = list(path.parts)
            answer = policy(q.prompt + "".join(part.text for part in before)).text
            path.parts.append(Part(answer))
            path.first = entropy(answer) if path.first is None else path.first
            chance = 0.5 + 0.2 * (entropy(answer) - path.first)
            assert path.turns == 0 or not 0 < chance < 1
            if path.turns and chance >= 1:
                room = size - len(made) - len(new)
                new += [Path(list(before), 0, path.first) for _ in range(min(beam - 1, room))]
            path.turns += 1
            observation = reply(answer)
            if observation is not None:
                path.parts.append(forced(observation))
                going.append(path)
        if not going and not new and len(made) < size:
            new = [Path([])]  # one more rollout from the prompt
        made += new
        live = [*going, *new]
    return [
        Trained(q.prompt, merged(p.parts), reward("".join(x.text for x in p.parts))) for p in made
    ]


@reference(
    "treepo",
    "multimodal-art-projection/TreePO: generate_sequences_tree_deepth_first_vanilla_mode and"
    " create_fallback_sample_by_policy, with run_treepo_train.sh: fixed_avg, by_fixed_div, by_"
    "response_traj, random fallback of paths that the policy stopped. Draws are given",
)
def treepo(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    first: int,
    restarts: Callable[[Sequence[str]], Sequence[str]],
    size: int = 16,
    segment: int = 512,
    depth: int = 14,
    width: int = 2,
) -> Rollouts:
    """`first` paths begin; `restarts` cuts paths that stopped, in a drawn order, if all have."""
    ended: list[str] = []
    stopped: list[str] = []
    live = [""] * first
    while live:
        going = []
        for path in live:
            more = policy(q.prompt + path, segment)
            text = path + more.text
            if more.reason == "length" and len(text) < depth * segment:
                going.append(text)
                continue
            ended.append(text)
            if more.reason != "length":
                stopped.append(text)
        room = size - len(ended)
        if going:
            total = max(min(room, width * len(live)), len(going))
            each, rest = divmod(total, len(going))
            counts = [each] * (len(going) - 1) + [each + rest]
            live = [t for t, n in zip(going, counts, strict=True) for _ in range(n)]
        else:
            live = [text for text in restarts(stopped or [""]) for _ in range(width)][:room]
    return [Trained(q.prompt, merged([Part(text)]), reward(text)) for text in ended]


@reference(
    "pta_grpo",
    "arXiv:2510.01833 by the record: plans, and chains sampled behind each; a plan is a first turn",
)
def pta_grpo(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    observation: str,
    plans: int = 4,
    chains: int = 4,
) -> Rollouts:
    group = []
    for number, plan in enumerate([policy(q.prompt).text for _ in range(plans)]):
        for _ in range(chains):
            chain = policy(q.prompt + plan + observation).text
            parts = merged([Part(plan), forced(observation), Part(chain)])
            score = reward(plan + observation + chain)
            group.append(Trained(q.prompt, parts, score, {"first_turn": float(number)}))
    return group


@reference(
    "spo_segment",
    "AIFrameResearch/SPO, math_episode_generator_with_mc_advantages.py:"
    " _create_value_estimation_requests; equal prefixes are estimated once",
)
def spo_segment(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    probability: Callable[[str], float],
    size: int = 8,
    completions: int = 9,
    interval: int = 5,
) -> Rollouts:
    """Reward terms `value<n>`: the value of the prefix of n letters, for each cut."""
    group = sample(q.prompt, policy, reward, size)
    values: Mapping[str, float] = {}
    result = []
    for rollout in group:
        unlikely = [i for i, letter in enumerate(rollout.text) if probability(letter) < 0.9]
        terms = {}
        for i in unlikely[::interval]:
            prefix = rollout.text[:i]
            if prefix not in values:
                rest = [policy(q.prompt + prefix).text for _ in range(completions)]
                mean = sum(reward(prefix + text) for text in rest) / completions
                values = {**values, prefix: mean}
            terms[f"value{i}"] = values[prefix]
        result.append(rollout.with_terms(**terms))
    return result


@reference(
    "omegaprm",
    "openreasoner/openr, data/omegaPRM_v2/omegaprm.py: OmegaPRM.run, without new tree nodes for"
    " right rollouts",
)
def omegaprm(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    size: int = 8,
    completions: int = 8,
    searches: int = 8,
) -> Rollouts:
    """Reward terms `value<n>`: the value of the prefix of n letters, if a search measured it."""
    group = sample(q.prompt, policy, reward, size)
    solved = sum(rollout.reward for rollout in group) / size
    visits: dict[str, int] = {"": 0}
    value_of: dict[str, float] = {"": solved}
    pool = [("", row.text) for row in group if 0 < solved < 1 and not row.reward]
    terms: dict[int, dict[str, float]] = {}
    texts = [row.text for row in group]
    indices = [i for i, row in enumerate(group) if 0 < solved < 1 and not row.reward]
    for _ in range(searches):
        if not pool:
            break

        def score(state: str, text: str) -> float:
            utility = 0.5 ** (1 - value_of[state]) * 0.9 ** ((len(text) - len(state)) / 500)
            return utility + 0.125 * sum(visits.values()) ** 0.5 / (1 + visits[state])

        scores = [score(*pair) for pair in pool]
        best = scores.index(max(scores))
        state, text = pool.pop(best)
        index = indices.pop(best)
        visits[state] += 1
        terms[index] = {}
        ends = [i + 1 for i, x in enumerate(text) if x == "|" and len(state) < i + 1 < len(text)]
        ends = [len(state), *ends, len(text)]
        while len(ends) > 2:
            middle = (len(ends) - 1) // 2
            prefix = text[: ends[middle]]
            rest = [policy(q.prompt + prefix).text for _ in range(completions)]
            wrong = [prefix + x for x in rest if not reward(prefix + x)]
            value = 1 - len(wrong) / completions
            terms[index][f"value{len(prefix)}"] = value
            if value > 0:
                value_of[prefix] = value
                visits.setdefault(prefix, 0)
                for more in wrong:
                    texts.append(more)
                    pool.append((prefix, more))
                    indices.append(len(texts) - 1)
            ends = ends[middle:] if value > 0 else ends[: middle + 1]
    rows = [row.with_terms(**terms.get(i, {})) for i, row in enumerate(group)]
    later = [i for i in terms if i >= size]
    added = [Trained(q.prompt, merged([Part(texts[i])]), reward(texts[i]), terms[i]) for i in later]
    return [*rows, *added]


@reference(
    "igpo",
    "GuoqingWang1/IGPO, scrl/llm_agent/generation.py, info_gain_type prob_diff: before each turn,"
    " exp of the mean log-probability of the answer behind the rollout so far and a prefix",
)
def igpo(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    reply: Reply,
    belief: Callable[[str], float],
    size: int = 16,
) -> Rollouts:
    """Reward terms `belief<n>`: the belief before the turn n."""
    group = []
    for _ in range(size):
        parts: list[Part] = []
        terms = {}
        observation: str | None = ""
        while observation is not None:
            parts.append(forced(observation))
            context = q.prompt + "".join(part.text for part in parts)
            terms[f"belief{len(terms)}"] = belief(context)
            answer = policy(context).text
            parts.append(Part(answer))
            observation = reply(answer)
        score = reward("".join(part.text for part in parts))
        group.append(Trained(q.prompt, merged(parts), score, terms))
    return group


@reference(
    "mars_selfplay",
    "arXiv:2510.15414 by the record: games of a task, each with a rollout for every seat",
)
def mars_selfplay(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    moves: Callable[[Sequence[str]], tuple[str, tuple[float, float] | None]],
    games: int = 8,
) -> Rollouts:
    """`moves`: from the answers so far to what the next player reads, or the final rewards."""
    group = []
    for _ in range(games):
        played: list[str] = []
        seats: list[list[Part]] = [[], []]
        while True:
            observation, outcome = moves(played)
            if outcome is not None:
                break
            seat = seats[len(played) % 2]
            seat.append(forced(observation))
            answer = policy("".join(part.text for part in seat)).text  # it reads its own seat
            seat.append(Part(answer))
            played.append(answer)
        for number, parts in enumerate(seats):
            first, *others = parts
            terms = {"seat": float(number)}
            group.append(Trained(first.text, merged(others), outcome[number], terms))
    return group
