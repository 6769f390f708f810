"""Financial statements from ledgers in SQLite, with questions that code answers.

Transactions are balanced double entries; a statement lists the balances of its accounts. Questions
ask for sums, ratios, interest, an option, or whether a rule is complied with. A statement has a
shape: the order of its accounts, and whether those that no question needs are listed.
"""

import random
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from grupo.core.types import Task

SCHEMA = """
CREATE TABLE account (name TEXT PRIMARY KEY, kind TEXT NOT NULL);
CREATE TABLE entry (
    voucher INTEGER NOT NULL, account TEXT NOT NULL REFERENCES account (name),
    debit INTEGER NOT NULL DEFAULT 0, credit INTEGER NOT NULL DEFAULT 0
);
"""
ACCOUNTS = {"cash": "asset", "stock": "asset", "debt": "liability", "equity": "capital"}
BALANCES = """
SELECT name, CASE kind WHEN 'asset' THEN sum(debit - credit) ELSE sum(credit - debit) END
FROM account JOIN entry ON account = name GROUP BY name
"""
UNBALANCED = "SELECT voucher FROM entry GROUP BY voucher HAVING sum(debit) <> sum(credit)"
RATES = (2, 3, 5)  # per cent
TAGS = ("<think>", "</think>", "<answer>", "</answer>")
SHAPES = tuple(permutations(("cash", "stock", "debt")))
TRAINED_SHAPES, HELD_OUT_SHAPES = SHAPES[:4], SHAPES[4:]
TOLERANCE = 0.05  # of a ratio, which is rounded to one decimal
KINDS = ("assets", "equity", "ratio", "interest", "covered", "most")


def new_ledger() -> sqlite3.Connection:
    """An empty ledger with its accounts."""
    ledger = sqlite3.connect(":memory:")
    ledger.executescript(SCHEMA)
    ledger.executemany("INSERT INTO account VALUES (?, ?)", ACCOUNTS.items())
    return ledger


def post(ledger: sqlite3.Connection, debit: str, credit: str, amount: int) -> None:
    """Enter a transaction on both sides.

    Args:
        ledger: The ledger.
        debit: Account that is debited.
        credit: Account that is credited.
        amount: The amount.
    """
    (number,) = ledger.execute("SELECT ifnull(max(voucher), 0) + 1 FROM entry").fetchone()
    ledger.execute("INSERT INTO entry VALUES (?, ?, ?, 0)", (number, debit, amount))
    ledger.execute("INSERT INTO entry VALUES (?, ?, 0, ?)", (number, credit, amount))


def balances(ledger: sqlite3.Connection) -> Mapping[str, int]:
    """The balance of each account, positive on its usual side.

    >>> ledger = new_ledger()
    >>> for accounts in (("cash", "equity", 5), ("cash", "debt", 4), ("stock", "cash", 3)):
    ...     post(ledger, *accounts)
    >>> balances(ledger)
    {'cash': 6, 'debt': 4, 'equity': 5, 'stock': 3}
    """
    return dict(ledger.execute(BALANCES).fetchall())


def draw_ledger(rng: random.Random) -> sqlite3.Connection:
    """A ledger of a company that is founded, borrows, and buys stock; balances of one digit."""
    while True:
        ledger = new_ledger()
        post(ledger, "cash", "equity", rng.randint(1, 9))
        post(ledger, "cash", "debt", rng.randint(1, 9))
        post(ledger, "stock", "cash", rng.randint(1, 9))
        if all(1 <= balance <= 9 for balance in balances(ledger).values()):
            return ledger


@dataclass(frozen=True)
class Question:
    """A question about a statement, its steps of reasoning and its answer."""

    text: str
    steps: str
    answer: str


def ask(kind: str, state: Mapping[str, int], rate: int) -> Question:
    """A question about the balances of a ledger.

    Args:
        kind: One of `KINDS`.
        state: The balances.
        rate: Interest rate in per cent.

    >>> state = {"cash": 6, "stock": 3, "debt": 4, "equity": 5}
    >>> [ask(kind, state, 2).answer for kind in KINDS]
    ['9', '5', '1.5', '8', 'yes', 'A']
    """
    cash, stock, debt = state["cash"], state["stock"], state["debt"]
    assets = cash + stock
    ratio = f"{cash / debt:.1f}"
    covered = "yes" if cash >= debt else "no"
    largest = max(("cash", "stock", "debt"), key=lambda name: state[name])
    option = "ABC"[("cash", "stock", "debt").index(largest)]
    read = f"cash {cash} stock {stock} "
    return {
        "assets": Question("assets ?", f"{read}so {assets}", f"{assets}"),
        "equity": Question(
            "equity ?", f"{read}so {assets} debt {debt} so {assets - debt}", f"{assets - debt}"
        ),
        "ratio": Question("cash per debt ?", f"cash {cash} debt {debt} so {ratio}", ratio),
        "interest": Question(
            f"interest at {rate} ?", f"debt {debt} at {rate} so {debt * rate}", f"{debt * rate}"
        ),
        "covered": Question(
            "is cash above debt ?", f"cash {cash} debt {debt} so {covered}", covered
        ),
        "most": Question(
            "most : A cash B stock C debt ?", f"{read}debt {debt} so {option}", option
        ),
    }[kind]


def statement(state: Mapping[str, int], shape: Sequence[str]) -> str:
    """The balances in the order of a shape.

    >>> statement({"cash": 6, "stock": 3, "debt": 4, "equity": 5}, ("debt", "cash", "stock"))
    'debt 4 cash 6 stock 3'
    """
    return " ".join(f"{name} {state[name]}" for name in shape)


def tasks(shapes: Sequence[Sequence[str]], count: int, seed: str) -> list[Task]:
    """Questions about new ledgers; `completion` reasons first, `direct` answers at once.

    Args:
        shapes: Shapes of the statements.
        count: Number of tasks.
        seed: Seed of the ledgers.
    """
    rng = random.Random(seed)
    found: dict[str, Task] = {}
    while len(found) < count:
        state = balances(draw_ledger(rng))
        kind = KINDS[len(found) % len(KINDS)]
        question = ask(kind, state, rng.choice(RATES))
        prompt = f"{statement(state, rng.choice(list(shapes)))} | {question.text} "
        answer = f"<answer>{question.answer}</answer>"
        columns = {
            "completion": f"<think>{question.steps}</think>{answer}",
            "direct": answer,
            "kind": kind,
        }
        found.setdefault(prompt, Task(prompt, prompt, question.answer, columns=columns))
    return list(found.values())


def training_tasks() -> Iterator[Task]:
    """1200 questions about statements of four shapes."""
    return iter(tasks(TRAINED_SHAPES, 1200, "trained"))


def held_out_tasks() -> Iterator[Task]:
    """180 questions about statements of the two other shapes."""
    return iter(tasks(HELD_OUT_SHAPES, 180, "held out"))
