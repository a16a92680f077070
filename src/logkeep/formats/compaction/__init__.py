"""The latest record of each key at every kept cut of a log: which records a fold may drop, and batches without them."""
