"""grupo: group-relative policy optimisation, every variant one short file of tested mathematics."""
