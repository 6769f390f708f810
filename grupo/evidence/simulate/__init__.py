"""Simulation of a run on other numbers of processes: `grupo simulate`."""
