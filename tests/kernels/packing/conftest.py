"""What tests of packing share: `laying` beside them, `tinylm` and `recurrent` of others."""
