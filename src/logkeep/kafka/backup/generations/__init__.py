"""New copies of compacted topics beside their active ones: when they begin, what a round copies, when they switch."""
