"""A backup set: backups of several sources under one id, each an ordinary backup.

plan    members, their order, the id, what the ends of the members mean together (pure)
run     all members are previewed, then captured, then followed to their ends

Nothing is stored about a set but the names of its members, in the request of each of them.
"""
