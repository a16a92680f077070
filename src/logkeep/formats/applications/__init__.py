"""Records of applications that take part in checkpoints: their headers and values as columns."""
