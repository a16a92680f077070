"""Run maps: which source offset a restore wrote to which target offset."""
