"""Types and pure functions of every other package; it imports no other package of grupo."""
