"""CogniSQL-R1-Zero: execution and format alone. Gajjar et al., 2025, arXiv:2507.06013."""

from grupo.core.extract_answer import answer_after_thoughts
from grupo.core.paper import Paper, Source
from grupo.envs.reward_term import RewardTerm
from grupo.envs.sql.answer import sql_query
from grupo.envs.sql.check import QueryCheck
from grupo.envs.sql.rewards import SqlExecution
from grupo.rewards import TagFormat


def cognisql_rewards() -> tuple[RewardTerm, ...]:
    """r = execution + 0.1 format, without partial credit.

    A right query in its tags has 1.1, a wrong or endless one 0.1, and an answer without tags 0.
    """
    execution = SqlExecution(QueryCheck(tagged_query))
    return (RewardTerm("execution", execution), RewardTerm("format", TagFormat(), 0.1))


def tagged_query(text: str) -> str | None:
    """The query inside <answer>, if the whole text is <think>…</think><answer>…</answer>.

    >>> tagged_query("<think>All.</think><answer>SELECT a FROM t</answer>")
    'SELECT a FROM t'
    >>> tagged_query("SELECT a FROM t") is None
    True
    """
    answer = answer_after_thoughts(text)
    return None if answer is None else sql_query(answer)


PAPER = Paper(
    title="CogniSQL-R1-Zero: Lightweight Reinforced Reasoning for Efficient SQL Generation",
    kind="reward",
    use="Answers are SQL queries on a database that you have, and partial credit is not wanted.",
    tags=("reward",),
    catalogue=("cognisql-r1-zero",),
    source=Source("abstract", "execution correctness and format tags; the weights are our choice"),
    checked=("golden",),
    missing=(
        "A gain over supervised training on unseen schemas beyond one run, docs/sql.md.",
        "The curve of the best of n answers.",
        "The prompt, and BIRD.",
    ),
    deviations=(
        "Results are compared as multisets, or as sequences with ORDER BY, also on copies of the "
        "database with other rows.",
    ),
    shown=("tests/envs/sql/test_rewards.py::test_cognisql_has_four_values",),
)
