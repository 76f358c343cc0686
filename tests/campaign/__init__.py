"""A campaign against the whole program: real processes, real databases, real signals. `make campaign` runs it.

A family is one way to attack. Its trials are numbered, and each follows from the campaign's seed and its number alone. What a
trial found is written down when it ends, so that a campaign that was interrupted goes on where it was.
"""
