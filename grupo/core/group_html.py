"""A group of rollouts as HTML, for notebooks."""

from collections.abc import Iterator
from typing import Any

from grupo.core.media import media_of
from grupo.core.message_content import content_text
from grupo.util import html

MAX_ROLLOUTS = 32


def group_html(group: Any) -> str:
    """Prompt, reference answer, and reward, length and answer of each rollout of a `Group`.

    The annotations do not name `Group` and `Rollout`, because the module of these types imports
    this one.
    """
    task = group.task
    reference = task.reference_answer
    names = dict.fromkeys(name for rollout in group.rollouts for name in rollout.reward_terms)
    shown = group.rollouts[:MAX_ROLLOUTS]
    more = len(group.rollouts) - len(shown)
    return html.fragment(
        html.paragraph(f"prompt {html.code(_text(task.prompt))}"),
        *(html.media(x.kind, x.data_url) for x in media_of(task.prompt)),
        html.paragraph(f"reference answer {html.code(reference)}") if reference is not None else "",
        html.table(
            ["", "reward", *map(html.escape, names), "length", "answer"],
            ([str(i), *_cells(rollout, list(names))] for i, rollout in enumerate(shown)),
        ),
        html.paragraph(f"{more} more rollouts") if more else "",
    )


def _cells(rollout: Any, names: list[str]) -> Iterator[str]:
    yield f"{rollout.reward:.3g}"
    for name in names:
        yield f"{rollout.reward_terms[name]:.3g}" if name in rollout.reward_terms else ""
    yield f"{rollout.length}{' (truncated)' * rollout.truncated}"
    error = f"<br>not scored: {html.code(rollout.error)}" if rollout.error else ""
    yield html.code(rollout.text) + error


def _text(prompt: Any) -> str:
    if isinstance(prompt, str):
        return prompt
    return "\n".join(f"{m.get('role')}: {content_text(m.get('content'))}" for m in prompt)
