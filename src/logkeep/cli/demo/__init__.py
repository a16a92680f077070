"""The demo: a story in chapters, told against real servers.

`stage` gives a chapter what it needs and tells what happens; `story` is the list of chapters. Kinds of sources add
theirs to the story.
"""
