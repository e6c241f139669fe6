"""What really does things to machines, one file per technology.

Law: a fabric serves its port and never asks why: it begins orders, says how far they are, and
returns at once. It decides nothing, and knows nothing of notices and approvals. Every fabric
passes `forewarn.testing.fabric_contract`.
"""
