"""The demo: a story in chapters, told against real servers.

`stage` gives a chapter what it needs and tells what happens; `story` is the list of chapters, by kind of source. `shop`
and `settings` are what Apache's own tools do to the servers.
"""
