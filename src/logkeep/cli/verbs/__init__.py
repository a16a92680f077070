"""The verbs, one module per noun: each declares, calls one function, renders one report."""
