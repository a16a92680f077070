"""The demo: a story in chapters, one per kind of source, against real servers.

`stage` runs and prints the steps; `story` lists the chapters. `shop` drives Kafka with Apache's own tools.
"""
