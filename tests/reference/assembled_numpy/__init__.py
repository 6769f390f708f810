"""What each paper's update does with a batch, in plain numpy and float64.

The files here import neither grupo nor torch. They were written from papers and released code, by
authors who had not read the methods. `tests/reference/assembled` compares the methods with them.

case.py            the batches
differentiate.py   derivatives by a complex step
formulas.py        means and deviations that many papers share
losses.py          losses that many papers share
update.py          what a reference states
<family>.py        the references of a family of methods
"""
