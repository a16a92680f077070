"""What a user may set, and where it was set.

`options` declares every option once: its flag, its `LOGKEEP_…` variable, its YAML key and its line in the reference
all come from that one value. `kinds` says how text becomes a typed value, `document` reads one YAML file, `load` merges
all places by precedence and remembers each value's origin, `secrets` fetches what is only ever given by reference.
Nothing here parses a command line or prints.
"""
