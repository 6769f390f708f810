"""What tests of packing share: `packing_seconds` beside them, `tinylm` and `recurrent` of others."""
