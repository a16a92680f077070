"""The pictures of README and pages, and the scripts that make them.

`python -m docs.pictures.plots` makes the plots from the tables of docs/benchmarks.md.
`python -m docs.pictures.recording` makes the terminal recording: it runs the commands and draws what they print.
`overview.svg` is drawn by hand.
"""
