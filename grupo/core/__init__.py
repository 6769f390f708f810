"""Types and pure helpers that every other package uses; it imports no other package of grupo."""
