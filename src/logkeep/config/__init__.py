"""Configuration: the options, and their values from flags, variables and YAML files.

`options` declares every option once: its flag, its `LOGKEEP_…` variable, its YAML key and its line in the reference are
made from that value. `option_types` turns text into typed values, `document` reads one YAML file, `load` merges all
places by precedence and records the origin of each value, `secrets` fetches secrets that are given by reference.
Nothing here parses a command line or prints.
"""
