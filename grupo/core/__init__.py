"""Types and pure functions of every other package; it imports `grupo.util` only."""
