"""How far the evidence about each paper goes, derived from the code that its places run."""
