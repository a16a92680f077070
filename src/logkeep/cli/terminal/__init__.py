"""Text for users on stdout and stderr: styles, tables, progress bars, questions."""
