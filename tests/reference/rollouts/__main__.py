"""Print the table of covered samplers: `python -m tests.reference.rollouts`."""

from tests.reference.rollouts.scripts import SCRIPTS, STATED_DEVIATIONS
from tests.reference.rollouts_plain.record import REFERENCES

print("| method | sampler | scripts | scripts with a stated deviation | written from |")
print("|---|---|---|---|---|")
for name in sorted(SCRIPTS):
    sampler = type(SCRIPTS[name][0].method.sampler).__name__
    deviating = sum(method == name for method, _ in STATED_DEVIATIONS)
    source = REFERENCES[name].source
    print(f"| {name} | `{sampler}` | {len(SCRIPTS[name])} | {deviating or '-'} | {source} |")
